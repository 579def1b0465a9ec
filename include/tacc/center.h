/** A center: float32 numbers in one process that any number of workers read and move, each when it wants to, without
 * the others taking part. The mechanism of asynchronous elastic averaging SGD.
 *
 * x is a worker's weights, c the center. An exchange (Zhang, Choromanska, LeCun: "Deep learning with Elastic Averaging
 * SGD", 2015, algorithm 1; You, Buluc, Demmel: "Scaling Deep Learning on GPU and Knights Landing clusters", SC'17,
 * equations 1 and 2 with one worker's term) is, for each element,
 *
 *   d = alpha (x - c),   x' = x - d,   c' = c + d          with the c that the exchange finds
 *
 * so x' + c' is x + c but for rounding. Workers are served first come, first served. What is one step, as seen by the
 * others, is the move of one element, in centers with locks the move of up to 16,384 elements in a row; an exchange as
 * a whole is not. docs/use/center.md says what holds when a process dies, and what it costs.
 *
 * Conventions are those of tacc.h. A taccCenter_t is used by one thread at a time, different ones by different threads
 * at once. After fork() a child makes new centers and connections. Errors of these calls are in
 * taccGetLastError(NULL) of the calling thread.
 * @file */
#ifndef TACC_CENTER_H
#define TACC_CENTER_H

#include "tacc/tacc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct taccCenter* taccCenter_t; /**< a center, in the process that keeps it or in one that connected */

/** How a center is kept, and how it is waited for. Start from TACC_CENTER_CONFIG_INITIALIZER. */
typedef struct {
  size_t size;      /**< sizeof(taccCenterConfig_t) as compiled in the program */
  unsigned version; /**< TACC_VERSION_CODE as compiled in the program */
  /** 1: updates are made under locks, and none is lost. 0 (Hogwild): without any; of two updates of one element at the
   * same time one may be lost. Default 1. Of taccCenterCreate; taccCenterConnect takes what the center has. */
  int locked;
  /** 1: processes of other hosts can connect, over TCP. 0: those of this host and user only, and no port is opened.
   * Default 1. Of taccCenterCreate. */
  int servesHosts;
  /** Seconds that a call may wait without getting on: for the center to answer (over a connection 2 s more), or for a
   * lock that a stopped process holds. 0: for ever. Default 30. Of taccCenterCreate also: how long the center tries a
   * request of a worker that it serves, so this should not be more than the workers' own. */
  double timeout;
} taccCenterConfig_t;

/** The defaults. */
#define TACC_CENTER_CONFIG_INITIALIZER \
  { sizeof(taccCenterConfig_t), TACC_VERSION_CODE, 1, 1, 30.0 }

/** This process keeps a center of `count` (1 or more) numbers, which become those of `initial` (copied; NULL: zeros).
 * Writes to *id what others need to connect: it carries the secret that lets them in, so keep it among the job; it is
 * no id for taccCommInitRank. A thread of the library serves them until taccCenterDestroy. *center is a worker's end as
 * well. `config` NULL: the defaults. Memory: 4 bytes per number, shared with the workers of this host. */
TACC_API taccResult_t taccCenterCreate(taccCenter_t* center, taccUniqueId* id, size_t count, const float* initial,
                                       const taccCenterConfig_t* config);

/** Connects to the center of that id: any process, as often as it likes, also one that takes the place of another that
 * died. `count` must be the center's. On the center's host, as its user, the numbers are mapped into this process
 * (unless TACC_SHM=off); else they travel over TCP, encrypted if TACC_ENCRYPTION=on, which must be set alike. `config`
 * NULL: the defaults. Errors: taccRemoteError: the center's process has ended, or refuses; taccTimeout: it did not
 * answer; taccInvalidUsage: another count or version of the library; taccInvalidArgument: no id of a center. */
TACC_API taccResult_t taccCenterConnect(taccCenter_t* center, const taccUniqueId* id, size_t count,
                                        const taccCenterConfig_t* config);

/** One exchange: moves `weights` (`count` numbers, the program's) towards the center and the center towards them.
 * alpha: finite, >= 0; above 1 it does not converge. Blocks until done.
 * After an error every element was either moved on both sides or on neither, but for those that were on their way over
 * TCP: these may have moved in the center alone. After taccTimeout center and connection can be used further; after
 * taccRemoteError (the center's process has ended, or destroyed it) only taccCenterDestroy is of use. */
TACC_API taccResult_t taccCenterExchange(taccCenter_t center, float* weights, float alpha);

/** Copies the center to `values`, or `values` to it (`count` numbers, the caller's). Others may move it meanwhile. */
TACC_API taccResult_t taccCenterRead(taccCenter_t center, float* values);
TACC_API taccResult_t taccCenterWrite(taccCenter_t center, const float* values); /**< the inverse */

/** What a center has done. */
typedef struct {
  size_t size;                   /**< sizeof(taccCenterInfo_t) as compiled in the program: set by the program */
  size_t count;                  /**< numbers */
  unsigned long long updates;    /**< whole exchanges of all workers, those of the past included */
  unsigned long long ownUpdates; /**< of this taccCenter_t */
  unsigned long long bytes;      /**< of numbers that this taccCenter_t gave to the center and took from it */
  unsigned long long inherited;  /**< locks that were taken over from workers that died while they held them */
  int workers;                   /**< connected now; the process that keeps the center does not count */
  int locked;                    /**< as the center was created */
  int remote;                    /**< 1: the numbers travel; 0: they are mapped */
} taccCenterInfo_t;

/** Asks the center where it is remote: a round trip. */
TACC_API taccResult_t taccCenterInfo(taccCenter_t center, taccCenterInfo_t* info);

/** Disconnects, and frees what the library has. Of the process that keeps the center: ends it; later calls of workers
 * get taccRemoteError. NULL is ignored. */
TACC_API taccResult_t taccCenterDestroy(taccCenter_t center);

#ifdef __cplusplus
}
#endif

#endif
