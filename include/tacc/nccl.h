/** NCCL's names for tacc, on host memory: a program written for NCCL compiles with this header in the place of nccl.h,
 * and links -ltacc in the place of -lnccl. Names are those of NCCL 2.19, and of later ones what has a counterpart:
 * gather, scatter, alltoall, shrink. What has none is not declared, so that a program that needs it does not compile
 * (docs/use/nccl.md lists it).
 *
 * What differs from NCCL
 *  - Buffers are host memory. Memory of a GPU is not reached.
 *  - A stream is a taccStream_t: cudaStreamCreate, cudaStreamSynchronize, cudaStreamQuery and cudaStreamDestroy are
 *    taccStreamCreate and so on. The null stream runs a call to its end in the calling thread.
 *  - ncclConfig_t has the members of taccConfig_t; of NCCL's own it has `blocking`.
 *  - A call may return taccTimeout, which NCCL does not have.
 *  - Messages name the functions of tacc.h.
 * CUDA's header, where a program needs it all the same, comes before this one; its streams are then refused.
 * @file */
#ifndef TACC_NCCL_H
#define TACC_NCCL_H

#include "tacc/tacc.h"

#define NCCL_MAJOR 2
#define NCCL_MINOR 19
#define NCCL_PATCH 0
#define NCCL_SUFFIX ""
/** NCCL's code of a version; it counted in thousands up to 2.8. */
#define NCCL_VERSION(major, minor, patch) \
  (((major) <= 2 && (minor) <= 8 ? 1000 : 10000) * (major) + 100 * (minor) + (patch))
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)

/* ------------------------------------------------------------------------------------------------------------- types
 */

#define ncclComm taccComm
typedef struct ncclComm* ncclComm_t;
typedef taccUniqueId ncclUniqueId;
typedef taccConfig_t ncclConfig_t;
typedef taccResult_t ncclResult_t;
typedef taccDataType_t ncclDataType_t;
typedef taccRedOp_t ncclRedOp_t;
typedef taccScalarResidence_t ncclScalarResidence_t;
#ifndef __DRIVER_TYPES_H__ /* CUDA's own */
typedef taccStream_t cudaStream_t;
#endif

#define NCCL_UNIQUE_ID_BYTES TACC_UNIQUE_ID_BYTES
#define NCCL_CONFIG_INITIALIZER TACC_CONFIG_INITIALIZER
#define NCCL_SPLIT_NOCOLOR TACC_SPLIT_NOCOLOR
#define NCCL_SHRINK_DEFAULT 0x00

/** Values are macros, since a C++ compiler warns of comparing those of one enumeration with those of another. */
#define ncclSuccess taccSuccess
#define ncclSystemError taccSystemError
#define ncclInternalError taccInternalError
#define ncclInvalidArgument taccInvalidArgument
#define ncclInvalidUsage taccInvalidUsage
#define ncclRemoteError taccRemoteError
#define ncclInProgress taccInProgress
#define ncclNumResults taccNumResults

#define ncclInt8 taccInt8
#define ncclChar taccChar
#define ncclUint8 taccUint8
#define ncclInt32 taccInt32
#define ncclInt taccInt
#define ncclUint32 taccUint32
#define ncclInt64 taccInt64
#define ncclUint64 taccUint64
#define ncclFloat16 taccFloat16
#define ncclHalf taccHalf
#define ncclFloat32 taccFloat32
#define ncclFloat taccFloat
#define ncclFloat64 taccFloat64
#define ncclDouble taccDouble
#define ncclBfloat16 taccBfloat16
#define ncclNumTypes taccNumTypes

#define ncclSum taccSum
#define ncclProd taccProd
#define ncclMax taccMax
#define ncclMin taccMin
#define ncclAvg taccAvg
#define ncclNumOps taccNumOps
#define ncclMaxRedOp taccMaxRedOp

#define ncclScalarDevice taccScalarDevice /**< the host, too */
#define ncclScalarHostImmediate taccScalarHostImmediate

/* --------------------------------------------------------------------------------------------------------- functions
 */

#define ncclGetErrorString taccGetErrorString
#define ncclGetLastError taccGetLastError
#define ncclGetUniqueId taccGetUniqueId

#define ncclCommInitRank taccCommInitRank
#define ncclCommInitRankConfig taccCommInitRankConfig
#define ncclCommInitAll taccCommInitAll
#define ncclCommSplit taccCommSplit
#define ncclCommShrink taccCommShrink
#define ncclCommGetAsyncError taccCommGetAsyncError
#define ncclCommCount taccCommCount
#define ncclCommUserRank taccCommUserRank

#define ncclMemAlloc taccMemAlloc
#define ncclMemFree taccMemFree
#define ncclCommRegister taccCommRegister
#define ncclCommDeregister taccCommDeregister

#define ncclAllReduce taccAllReduce
#define ncclBroadcast taccBroadcast
#define ncclBcast taccBcast
#define ncclReduce taccReduce
#define ncclAllGather taccAllGather
#define ncclReduceScatter taccReduceScatter
#define ncclAlltoAll taccAllToAll
#define ncclGather taccGather
#define ncclScatter taccScatter
#define ncclSend taccSend
#define ncclRecv taccRecv
#define ncclGroupStart taccGroupStart
#define ncclGroupEnd taccGroupEnd
#define ncclRedOpCreatePreMulSum taccRedOpCreatePreMulSum
#define ncclRedOpDestroy taccRedOpDestroy

#ifdef __cplusplus
extern "C" {
#endif

/** The version of NCCL whose names these are, not tacc's. */
static inline ncclResult_t ncclGetVersion(int* version) {
  if (version == NULL) return taccGetVersion(version);
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

/** NULL, such as a rank gets that a split leaves out, is ended already. */
static inline ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return comm == NULL ? ncclSuccess : taccCommFinalize(comm);
}
static inline ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return comm == NULL ? ncclSuccess : taccCommDestroy(comm);
}
static inline ncclResult_t ncclCommAbort(ncclComm_t comm) { return comm == NULL ? ncclSuccess : taccCommAbort(comm); }

/** There are no devices: the number of the rank among those of its host, which is what programs choose theirs by. */
static inline ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  taccNodeInfo_t info;
  ncclResult_t result;
  if (device == NULL) return taccCommUserRank(comm, device); /* which says what is wrong */
  info.size = sizeof(info);
  result = taccCommGetNodeInfo(comm, &info);
  if (result == ncclSuccess) *device = info.localRank;
  return result;
}

#ifdef __cplusplus
}
#endif

#endif
