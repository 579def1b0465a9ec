/* NCCL's numbers and signatures, as a program written for it relies on them. Included as C and as C++; the compiler is
 * the test. */
#ifndef TESTS_NCCL_NAMES_H
#define TESTS_NCCL_NAMES_H

#include <assert.h>

#include "tacc/nccl.h"

static_assert(ncclSuccess == 0 && ncclSystemError == 2 && ncclInternalError == 3, "results");
static_assert(ncclInvalidArgument == 4 && ncclInvalidUsage == 5 && ncclRemoteError == 6 && ncclInProgress == 7,
              "results");
static_assert(ncclInt8 == 0 && ncclChar == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclInt == 2, "types");
static_assert(ncclUint32 == 3 && ncclInt64 == 4 && ncclUint64 == 5 && ncclFloat16 == 6 && ncclHalf == 6, "types");
static_assert(ncclFloat32 == 7 && ncclFloat == 7 && ncclFloat64 == 8 && ncclDouble == 8 && ncclBfloat16 == 9, "types");
static_assert(ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4, "operations");
static_assert(ncclScalarDevice == 0 && ncclScalarHostImmediate == 1, "where scalars are");
static_assert(NCCL_UNIQUE_ID_BYTES == 128 && sizeof(ncclUniqueId) == 128, "ids");
static_assert(NCCL_SPLIT_NOCOLOR == -1, "colours");
static_assert(NCCL_VERSION(2, 8, 4) == 2804 && NCCL_VERSION(2, 9, 6) == 20906, "versions");
static_assert(NCCL_VERSION_CODE == 21900, "version");

/* As programs with a header of their own do. */
struct ncclComm;
typedef struct ncclComm* ncclComm_t;

typedef struct {
  ncclResult_t (*getVersion)(int*);
  ncclResult_t (*getUniqueId)(ncclUniqueId*);
  ncclResult_t (*initRankConfig)(ncclComm_t*, int, ncclUniqueId, int, const ncclConfig_t*);
  ncclResult_t (*initRank)(ncclComm_t*, int, ncclUniqueId, int);
  ncclResult_t (*initAll)(ncclComm_t*, int, const int*);
  ncclResult_t (*finalize)(ncclComm_t);
  ncclResult_t (*destroy)(ncclComm_t);
  ncclResult_t (*abort)(ncclComm_t);
  ncclResult_t (*split)(ncclComm_t, int, int, ncclComm_t*, const ncclConfig_t*);
  const char* (*errorString)(ncclResult_t);
  const char* (*lastError)(ncclComm_t);
  ncclResult_t (*asyncError)(ncclComm_t, ncclResult_t*);
  ncclResult_t (*count)(const ncclComm_t, int*);
  ncclResult_t (*device)(const ncclComm_t, int*);
  ncclResult_t (*userRank)(const ncclComm_t, int*);
  ncclResult_t (*memAlloc)(void**, size_t);
  ncclResult_t (*memFree)(void*);
  ncclResult_t (*commRegister)(const ncclComm_t, void*, size_t, void**);
  ncclResult_t (*deregister)(const ncclComm_t, void*);
  ncclResult_t (*preMulSum)(ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t, ncclComm_t);
  ncclResult_t (*redOpDestroy)(ncclRedOp_t, ncclComm_t);
  ncclResult_t (*reduce)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t);
  ncclResult_t (*bcast)(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  ncclResult_t (*broadcast)(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  ncclResult_t (*allReduce)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
  ncclResult_t (*reduceScatter)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
  ncclResult_t (*allGather)(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
  ncclResult_t (*alltoAll)(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
  ncclResult_t (*gather)(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  ncclResult_t (*scatter)(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  ncclResult_t (*send)(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  ncclResult_t (*recv)(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  ncclResult_t (*groupStart)(void);
  ncclResult_t (*groupEnd)(void);
} NcclFunctions;

static const NcclFunctions ncclFunctions = {
    ncclGetVersion,
    ncclGetUniqueId,
    ncclCommInitRankConfig,
    ncclCommInitRank,
    ncclCommInitAll,
    ncclCommFinalize,
    ncclCommDestroy,
    ncclCommAbort,
    ncclCommSplit,
    ncclGetErrorString,
    ncclGetLastError,
    ncclCommGetAsyncError,
    ncclCommCount,
    ncclCommCuDevice,
    ncclCommUserRank,
    ncclMemAlloc,
    ncclMemFree,
    ncclCommRegister,
    ncclCommDeregister,
    ncclRedOpCreatePreMulSum,
    ncclRedOpDestroy,
    ncclReduce,
    ncclBcast,
    ncclBroadcast,
    ncclAllReduce,
    ncclReduceScatter,
    ncclAllGather,
    ncclAlltoAll,
    ncclGather,
    ncclScatter,
    ncclSend,
    ncclRecv,
    ncclGroupStart,
    ncclGroupEnd,
};

#endif
