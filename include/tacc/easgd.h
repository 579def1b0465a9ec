/** Elastic averaging SGD: data-parallel training in which every rank has its own weights, and a center holds them
 * together. Ranks exchange with the center every few steps instead of summing gradients in every step.
 *
 * x is a rank's weights, g its gradient, c the center, p the number of ranks, eta the learning rate, rho the elasticity
 * and alpha = eta * rho (Zhang, Choromanska, LeCun: "Deep learning with Elastic Averaging SGD", 2015; You, Buluc,
 * Demmel: "Scaling Deep Learning on GPU and Knights Landing clusters", SC'17, equations 1 to 6):
 *
 *   a step                      x' = x - eta g
 *   with momentum               v' = mu v - eta g,  x' = x + v'
 *   a step with an exchange     the same, less alpha (x - c)
 *   the center, synchronous     c' = c + alpha sum over ranks of (x - c)
 *   the center, asynchronous    c' = c + alpha (x - c), for each rank as it comes
 *
 * Every tau-th step exchanges (tau: `period`). All of it is float32. docs/use/easgd.md says which mode is for what.
 *
 * Conventions are those of tacc.h. A taccEasgd_t is used by one thread at a time, and its functions count as calls on
 * its communicator. What a mode does beside the program counts as given to a stream: other calls on the communicator
 * wait until it is over. Not inside a group.
 * @file */
#ifndef TACC_EASGD_H
#define TACC_EASGD_H

#include "tacc/tacc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct taccEasgd* taccEasgd_t; /**< a training of this rank */

/** How ranks meet the center. */
typedef enum {
  /** Rank 0 has the center and serves one rank after the other, in the order of the ranks: the papers' baseline. */
  taccEasgdOriginal = 0,
  /** First come, first served, the center under locks; no rank waits for another one's step. With `momentum` it is the
   * papers' Async MEASGD. */
  taccEasgdAsync = 1,
  /** Async without a lock: updates of two ranks to one element at the same time may lose one of them. */
  taccEasgdHogwild = 2,
  /** Sync 1: rank 0 has the center, weights are reduced to it and the center is broadcast, along trees. */
  taccEasgdSync1 = 3,
  /** Sync 2: every rank has the center, and one allreduce moves all of them. No server. */
  taccEasgdSync2 = 4,
  /** Sync 3: as Sync 2, and the exchange runs beside the next gradient's computation. It uses the weights from before
   * that step, so the trajectory is that of Sync 2 but for the order in which sums are rounded. */
  taccEasgdSync3 = 5,
  /** The center is cut into a slice for each rank: reduce-scatter, update of the own slice, allgather. As Sync 2 with
   * 1/p of the center's memory. Our reading of swFLOW's "decentralized" EASGD, whose text gives no equations. */
  taccEasgdDecentralized = 6,
  /** The same beside all steps until the next exchange: the center moves by the weights as they were one period ago. */
  taccEasgdDecentralizedStale = 7,
  /** Ranks of one group (`group`) sum their gradients in every step and so have the same weights; groups exchange with
   * the center as in Sync 2. In groups of equal size each group keeps one center, a slice on each of its ranks. */
  taccEasgdHierarchical = 8,
  taccEasgdNumModes = 9
} taccEasgdMode_t;

/** "original", "async", "hogwild", "sync1", "sync2", "sync3", "decentralized", "decentralized-stale", "hierarchical";
 * NULL for what is no mode. The library's memory. */
TACC_API const char* taccEasgdModeName(taccEasgdMode_t mode);

/** What an exchange moves for each element. With 16 bits the differences alpha (x - c) are rounded, and a rank's
 * weights move by what was sent, so what was rounded off stays in x - c and comes with the next exchange: error
 * feedback that needs no memory. The sums are rounded too, equally on all ranks. Sync 2, Sync 3 and Hierarchical only.
 */
typedef enum { taccEasgdWire32 = 0, taccEasgdWireBfloat16 = 1, taccEasgdWireFloat16 = 2 } taccEasgdWire_t;

/** Which ranks Hierarchical keeps together. */
typedef enum {
  taccEasgdGroupHost = 0,    /**< those of one host */
  taccEasgdGroupNuma = 1,    /**< those whose processors share a NUMA domain; each rank must be bound to one, else
                                taccInvalidUsage on all */
  taccEasgdGroupNetwork = 2, /**< those of the topology's lowest level above the hosts: a leaf switch, a supernode;
                                without such a level taccInvalidUsage on all */
  taccEasgdGroupColor = 3    /**< those with the same `color` */
} taccEasgdGroup_t;

/** Which ranks serve the center of an asynchronous mode, each in a separate thread. Their death ends the training of
 * all. */
typedef enum {
  taccEasgdServerRank0 = 0,  /**< rank 0 has all of it */
  taccEasgdServerPerHost = 1 /**< the first rank of every host has a slice: what workers send goes over all hosts' links
                                instead of one's */
} taccEasgdServers_t;

/** Start from TACC_EASGD_CONFIG_INITIALIZER. All but `color` must be equal on all ranks. */
typedef struct {
  size_t size;          /**< sizeof(taccEasgdConfig_t) as compiled in the program */
  unsigned version;     /**< TACC_VERSION_CODE as compiled in the program */
  taccEasgdMode_t mode; /**< default: taccEasgdSync2 */
  float learningRate;   /**< eta, > 0; default 0.01 */
  float elasticity; /**< rho, >= 0; alpha = eta * rho. 0: alpha is chosen so that p * alpha = 0.9, as the first paper
                       suggests, whatever the learning rate is later */
  float momentum;   /**< mu, 0 <= mu < 1; default 0 */
  int period;       /**< tau, >= 1: every tau-th step exchanges; default 1 */
  taccEasgdWire_t wire;   /**< default: taccEasgdWire32 */
  taccEasgdGroup_t group; /**< of Hierarchical; default taccEasgdGroupHost */
  int color;              /**< >= 0 */
  /** Synchronous modes are stable for p * alpha <= 1 (of Hierarchical: the number of groups for p), asynchronous ones
   * for alpha <= 1; more is refused unless this is 1. */
  int allowUnstable;
  /** 1: every exchange looks for weights that are not finite, while they are in the cache; the first one's index is
   * then an error that ends the communicator, before it reaches the center. Default 0. */
  int checkFinite;
  taccEasgdServers_t servers; /**< of Async and Hogwild; default taccEasgdServerRank0. Without effect on a worker that
                                 comes to a center */
} taccEasgdConfig_t;

/** The defaults. */
#define TACC_EASGD_CONFIG_INITIALIZER                                                                    \
  {                                                                                                      \
    sizeof(taccEasgdConfig_t), TACC_VERSION_CODE, taccEasgdSync2, 0.01f, 0.0f, 0.0f, 1, taccEasgdWire32, \
        taccEasgdGroupHost, 0, 0, 0, taccEasgdServerRank0                                                \
  }

/** Collective over `comm`, which it uses until taccEasgdDestroy. `weights`: `count` numbers, this rank's, which stay
 * the program's; every step changes them. taccMemAlloc's memory is fastest. Counts or configurations that differ
 * between ranks are taccInvalidUsage on all. */
TACC_API taccResult_t taccEasgdCreate(taccEasgd_t* easgd, float* weights, size_t count, taccComm_t comm,
                                      const taccEasgdConfig_t* config);
/** The same for a model of several tensors: the library lays out the weights, and the gradients likewise, one tensor
 * behind the other in separate memory (each at a multiple of 64 bytes), so that an exchange is one message.
 * `counts`: elements of each tensor. */
TACC_API taccResult_t taccEasgdCreateTensors(taccEasgd_t* easgd, const size_t* counts, int tensors, taccComm_t comm,
                                             const taccEasgdConfig_t* config);
/** A worker of an asynchronous mode that is in no communicator, as one that was started again after its death: it comes
 * to the center that others keep, by the id of taccEasgdGetCenterId. Local. taccEasgdStart gives it the center for its
 * weights. Its alpha is that of one rank (0.9) unless `elasticity` says otherwise, so say it. */
TACC_API taccResult_t taccEasgdCreateAtCenter(taccEasgd_t* easgd, float* weights, size_t count,
                                              const taccUniqueId* center, const taccEasgdConfig_t* config);
/** Where others find the center of an asynchronous mode. A process that has it is let in: keep it secret.
 * taccInvalidUsage where several hosts keep slices. */
TACC_API taccResult_t taccEasgdGetCenterId(taccEasgd_t easgd, taccUniqueId* center);
/** The same of a center with a server on every host, which has several ids, one for each slice: `*slices` is how many
 * `centers` has room for, and becomes how many there are; with `centers` NULL nothing else is done. A worker needs all
 * of them, in this order. */
TACC_API taccResult_t taccEasgdGetCenterIds(taccEasgd_t easgd, taccUniqueId* centers, int* slices);
/** taccEasgdCreateAtCenter for a center of `slices` slices, whose ids are in the order of taccEasgdGetCenterIds. */
TACC_API taccResult_t taccEasgdCreateAtCenters(taccEasgd_t* easgd, float* weights, size_t count,
                                               const taccUniqueId* centers, int slices,
                                               const taccEasgdConfig_t* config);
/** Where tensor `index` lies; `weights`, `gradients` may be NULL. Valid until taccEasgdDestroy. */
TACC_API taccResult_t taccEasgdGetTensor(taccEasgd_t easgd, int index, float** weights, float** gradients);

/** Collective. Rank 0's weights become every rank's and the center; velocities become zero. Once before the first step,
 * unless a state was loaded; again whenever training begins anew. */
TACC_API taccResult_t taccEasgdStart(taccEasgd_t easgd);

/** One step with this rank's gradient (`count` numbers; NULL: the library's own memory of taccEasgdCreateTensors),
 * which is only read. Every tau-th call exchanges: then all ranks must make it, but in asynchronous modes. In
 * Hierarchical every call needs all ranks of the group. Where the mode overlaps, an exchange begins in a thread of the
 * library when the call before it returns; until the next call the weights may be read and not written. */
TACC_API taccResult_t taccEasgdStep(taccEasgd_t easgd, const float* gradients);

/** An exchange without a gradient, whatever the period: x' = x - alpha (x - c), and the center moves. Ends an exchange
 * that is under way first. */
TACC_API taccResult_t taccEasgdExchange(taccEasgd_t easgd);

/** Writes the center to `center` (`count` numbers of the caller's), with what an exchange that is under way adds to it.
 * Collective, but in asynchronous modes. */
TACC_API taccResult_t taccEasgdCenter(taccEasgd_t easgd, float* center);

/** For schedules; from the next step on. Equal on all ranks, but in asynchronous modes. Stability is checked as at
 * creation. */
TACC_API taccResult_t taccEasgdSetLearningRate(taccEasgd_t easgd, float learningRate);

/** What a training has done so far, on this rank. */
typedef struct {
  size_t size;                  /**< sizeof(taccEasgdInfo_t) as compiled in the program: set by the program */
  unsigned long long steps;     /**< taken */
  unsigned long long exchanges; /**< made */
  unsigned long long bytes;     /**< of numbers that this rank gave to exchanges and took from them */
  double exchangeSeconds;       /**< that exchanges took, hidden or not */
  double waitSeconds; /**< of these, that the program waited for; without the step behind an overlapped exchange */
  double hiddenShare; /**< 1 - waitSeconds / exchangeSeconds; 0 where nothing was exchanged */
  double alpha;       /**< that is in force */
  /** Of asynchronous modes: updates of others that the center took between two exchanges of this rank, in the mean; of
   * DecentralizedStale: (p - 1) once it is under way; else 0. */
  double staleness;
} taccEasgdInfo_t;

/** Local. */
TACC_API taccResult_t taccEasgdInfo(taccEasgd_t easgd, taccEasgdInfo_t* info);

/** Writes weights, velocity, this rank's part of the center, error feedback and the number of steps to `path`, a file
 * of this rank's own: beside it first, then renamed, so that there is always a whole one. With a checksum. Ends an
 * exchange that is under way first. Local, but all ranks must save after the same step to load together. */
TACC_API taccResult_t taccEasgdSave(taccEasgd_t easgd, const char* path);
/** The inverse, instead of taccEasgdStart. A file that is damaged, foreign, of another mode, count, rank or number of
 * ranks, is refused, and all stays as it was. Collective: where one rank cannot load, or loads another step than the
 * others, none does. */
TACC_API taccResult_t taccEasgdLoad(taccEasgd_t easgd, const char* path);

/** Collective like taccCommDestroy: ends what is under way. */
TACC_API taccResult_t taccEasgdDestroy(taccEasgd_t easgd);

/** One pass for synchronous SGD: the mean gradient over all ranks, and each rank's own weights made new while its parts
 * are in the cache:
 *   v' = mu v - eta mean(g),   x' = x + v'        velocity NULL: mu is 0
 * `gradients`, `weights`, `velocity`: `count` numbers each, the first only read. Weights and velocities are equal on
 * all ranks, and stay so bit for bit. Collective; runs in the calling thread. */
TACC_API taccResult_t taccAllReduceUpdate(const float* gradients, float* weights, float* velocity, size_t count,
                                          float learningRate, float momentum, taccComm_t comm);

#ifdef __cplusplus
}
#endif

#endif
