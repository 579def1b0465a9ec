/** What the functions of tacc take and return: results, element types, operations, handles and options. Included by
 * tacc/tacc.h, which says what holds for all of them.
 * @file */
#ifndef TACC_TYPES_H
#define TACC_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define TACC_MAJOR 0 /**< of the version of this header */
#define TACC_MINOR 1 /**< likewise */
#define TACC_PATCH 0 /**< likewise */
/** 10000 * major + 100 * minor + patch. */
#define TACC_VERSION_CODE 100

#if defined(__GNUC__)
#define TACC_API __attribute__((visibility("default"))) /**< a function that the library shows */
#else
#define TACC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Result of every call. The numbers are NCCL's; 1 (a CUDA error there) is not used. */
typedef enum {
  taccSuccess = 0,
  taccSystemError = 2,     /**< the operating system refused something; the message holds the call and errno */
  taccInternalError = 3,   /**< a bug in tacc */
  taccInvalidArgument = 4, /**< one argument is wrong by itself */
  taccInvalidUsage = 5,    /**< the call does not fit what this or another rank did before */
  taccRemoteError = 6,     /**< another rank failed, died or aborted */
  taccInProgress = 7,      /**< not finished yet; ask again */
  taccTimeout = 8,         /**< another rank did not come within the time-out */
  taccNumResults = 9
} taccResult_t;

/** Element types; up to bfloat16 the numbers are NCCL's. float16 and bfloat16 are summed in float32 and rounded once.
 * Which operations a type has: sum, prod, max, min and avg all numbers; complex numbers sum, prod and avg; the logical
 * operations integers and bool; the bitwise ones integers; minloc and maxloc pairs, and nothing else; an operation of
 * the program every type. Anything else is taccInvalidArgument. */
typedef enum {
  taccInt8 = 0,
  taccUint8 = 1,
  taccInt32 = 2,
  taccUint32 = 3,
  taccInt64 = 4,
  taccUint64 = 5,
  taccFloat16 = 6, /**< IEEE binary16 */
  taccFloat32 = 7,
  taccFloat64 = 8,
  taccBfloat16 = 9, /**< upper half of a binary32 */
  taccBool = 10,    /**< a byte: 0 is false, all else true; results are 0 or 1 */
  taccInt16 = 11,
  taccUint16 = 12,
  taccComplex64 = 13,  /**< two float32: real, imaginary */
  taccComplex128 = 14, /**< two float64 */
  /** A value and an index, as the C compiler lays out struct { TYPE value; int32_t index; }: bytes between and behind
   * them belong to the element and mean nothing. */
  taccFloatInt = 15,  /**< 8 bytes */
  taccDoubleInt = 16, /**< 16 bytes */
  taccLongInt = 17,   /**< 16 bytes; the value has 64 bits */
  taccIntInt = 18,    /**< 8 bytes */
  taccShortInt = 19,  /**< 8 bytes */
  taccNumTypes = 20,
  taccChar = taccInt8,
  taccInt = taccInt32,
  taccHalf = taccFloat16,
  taccFloat = taccFloat32,
  taccDouble = taccFloat64
} taccDataType_t;

/** Reductions; up to avg the numbers are NCCL's. Integers wrap modulo 2^bits; taccAvg divides the sum by the number of
 * ranks (integers truncate towards zero). The logical ones give 0 or 1. taccMinLoc and taccMaxLoc give the least
 * (greatest) value of pairs, with the least index among equal ones. A value of taccNumOps or more is an operator made
 * by taccRedOpCreatePreMulSum or taccRedOpCreateUser. */
typedef enum {
  taccSum = 0,
  taccProd = 1,
  taccMax = 2,
  taccMin = 3,
  taccAvg = 4,
  taccLogicalAnd = 5,
  taccLogicalOr = 6,
  taccLogicalXor = 7,
  taccBitAnd = 8,
  taccBitOr = 9,
  taccBitXor = 10,
  taccMinLoc = 11,
  taccMaxLoc = 12,
  taccNumOps = 13,
  taccMaxRedOp = 0x7fffffff
} taccRedOp_t;

/** Where taccRedOpCreatePreMulSum finds its factor. Both mean the host here; the value is read before the call returns.
 */
typedef enum { taccScalarDevice = 0, taccScalarHostImmediate = 1 } taccScalarResidence_t;

typedef struct taccComm* taccComm_t;     /**< one rank's end of a communicator */
typedef struct taccStream* taccStream_t; /**< an ordered queue of asynchronous work; NULL: run in the calling thread */

#define TACC_UNIQUE_ID_BYTES 128 /**< of a taccUniqueId */
/** Names a communicator that is being formed, and carries the secret that lets a rank join. Copy it to all ranks by any
 * means (file, environment, MPI_Bcast). A process that knows it can join: keep it secret. */
typedef struct {
  char internal[TACC_UNIQUE_ID_BYTES]; /**< read by the library alone */
} taccUniqueId;

struct taccTransport;

/** Options of a communicator. Always start from TACC_CONFIG_INITIALIZER, so that a program compiled against an older
 * header keeps its meaning with a newer library. */
typedef struct {
  size_t size;             /**< sizeof(taccConfig_t) as compiled in the program */
  unsigned magic;          /**< TACC_CONFIG_MAGIC */
  unsigned version;        /**< TACC_VERSION_CODE as compiled in the program */
  double initTimeout;      /**< seconds to wait for all ranks to join; default 120 */
  double operationTimeout; /**< seconds that one operation may wait for another rank; default 600; 0: for ever */
  const char* algorithm; /**< force one algorithm by its name (a collective that it does not serve is then an error that
                            lists those that do); NULL: the library chooses */
  const char* name;      /**< shown in messages; NULL: none */
  /** The program's own way to move bytes between hosts (tacc/transport.h); used where TACC_TRANSPORT=mpi, and where
   * nothing else works. The library copies the table, and calls its `destroy` when the communicator ends or the call
   * that was given it fails. NULL: none. */
  const struct taccTransport* transport;
  /** 1: the init calls return when all ranks have joined. 0: they return taccInProgress at once, with a handle, and
   * another thread joins: ask taccCommGetAsyncError until it says something else than taccInProgress. Until then, and
   * for ever where it says an error, only it, taccGetLastError, taccCommAbort (which ends the joining) and, after an
   * error, taccCommDestroy are allowed. Not inside a group. Split and shrink always block. Default 1. */
  int blocking;
  /** 1: reductions of floating-point numbers give the same bits in every run: each element is ((x0 + x1) + x2) ..., in
   * the order of the ranks, whatever the algorithm, the transport, the hosts on which the ranks are and the size of the
   * message. Costs bytes between hosts (docs/use/reproducible.md). Equal on all ranks. TACC_REPRODUCIBLE is stronger.
   * Default 0. */
  int reproducible;
  /** Whether the measured times of calls correct what the library chooses between hosts, so that an algorithm that
   * became slow is replaced by another, on all ranks in the same call (docs/understand/dynamic.md): 1 or 0; default 1.
   * A forced algorithm is never replaced. */
  int dynamic;
  /** Called with idleContext again and again while a call on the communicator waits for other ranks, by the thread that
   * waits: every millisecond at least, every 20 us at most. For programs in which others need something of this thread
   * before they can come, such as the progress of its MPI. It must return soon (what it takes is added to the wait),
   * must not throw, and may abort this communicator, not use it otherwise; it may use others. Calls that do not wait
   * do not call it, nor does joining. A communicator that is split off or left by a shrink without a configuration of
   * its own keeps it. NULL: none, and then it costs nothing. Default NULL. */
  void (*idle)(void* idleContext);
  void* idleContext; /**< what `idle` is called with */
  /** 1: partial sums of taccFloat16 and taccBfloat16 travel between hosts as 16 bits and are rounded at each hop, as in
   * NCCL: half the bytes of taccFloat32. 0: they travel as 32 bits, so that each element is rounded once; results
   * travel as 16 bits either way, where vectors are long. Equal on all ranks; a reproducible communicator takes no
   * notice. TACC_HALF_PARTIAL_SUMS is stronger. Default 0. */
  int halfPartialSums;
} taccConfig_t;
#define TACC_CONFIG_MAGIC 0x7acc0001u /**< tells an initialised taccConfig_t */
/** The defaults. */
#define TACC_CONFIG_INITIALIZER \
  { sizeof(taccConfig_t), TACC_CONFIG_MAGIC, TACC_VERSION_CODE, 120.0, 600.0, NULL, NULL, NULL, 1, 0, 1, NULL, NULL, 0 }

#ifdef __cplusplus
}
#endif

#endif
