/* The public header is plain C11, and every function has the type that is written down here a second time. */
#include <tacc/tacc.h>

/* A table of all functions: an initializer of another type is an error of the compiler. */
static const struct {
  taccResult_t (*getVersion)(int*);
  const char* (*getErrorString)(taccResult_t);
  const char* (*getLastError)(taccComm_t);
  taccResult_t (*getUniqueId)(taccUniqueId*);
  taccResult_t (*commInitRank)(taccComm_t*, int, taccUniqueId, int);
  taccResult_t (*commInitRankConfig)(taccComm_t*, int, taccUniqueId, int, const taccConfig_t*);
  taccResult_t (*commInitEnv)(taccComm_t*, const taccConfig_t*);
  taccResult_t (*getLaunch)(const char**, int*, int*);
  taccResult_t (*commInitAll)(taccComm_t*, int, const int*);
  taccResult_t (*commSplit)(taccComm_t, int, int, taccComm_t*, const taccConfig_t*);
  taccResult_t (*commCreateGroup)(taccComm_t, const int*, int, taccComm_t*, const taccConfig_t*);
  taccResult_t (*commFinalize)(taccComm_t);
  taccResult_t (*commDestroy)(taccComm_t);
  taccResult_t (*commAbort)(taccComm_t);
  taccResult_t (*commGetAsyncError)(taccComm_t, taccResult_t*);
  taccResult_t (*commCount)(taccComm_t, int*);
  taccResult_t (*commUserRank)(taccComm_t, int*);
  taccResult_t (*commGetInfo)(taccComm_t, taccCommInfo_t*);
  taccResult_t (*memAlloc)(void**, size_t);
  taccResult_t (*memReserve)(void**, size_t);
  taccResult_t (*memUnshare)(void*);
  taccResult_t (*memFree)(void*);
  taccResult_t (*commRegister)(taccComm_t, void*, size_t, void**);
  taccResult_t (*commDeregister)(taccComm_t, void*);
  taccResult_t (*streamCreate)(taccStream_t*);
  taccResult_t (*streamDestroy)(taccStream_t);
  taccResult_t (*streamQuery)(taccStream_t);
  taccResult_t (*streamSynchronize)(taccStream_t);
  taccResult_t (*streamRequest)(taccStream_t, taccRequest_t*);
  taccResult_t (*requestTest)(taccRequest_t);
  taccResult_t (*requestWait)(taccRequest_t);
  taccResult_t (*requestWaitFor)(taccRequest_t, double);
  taccResult_t (*requestDestroy)(taccRequest_t);
  taccResult_t (*eventCreate)(taccEvent_t*);
  taccResult_t (*eventRecord)(taccEvent_t, taccStream_t);
  taccResult_t (*eventQuery)(taccEvent_t);
  taccResult_t (*eventSynchronize)(taccEvent_t);
  taccResult_t (*eventDestroy)(taccEvent_t);
  taccResult_t (*streamWaitEvent)(taccStream_t, taccEvent_t);
  taccResult_t (*allReduce)(const void*, void*, size_t, taccDataType_t, taccRedOp_t, taccComm_t, taccStream_t);
  taccResult_t (*broadcast)(const void*, void*, size_t, taccDataType_t, int, taccComm_t, taccStream_t);
  taccResult_t (*bcast)(void*, size_t, taccDataType_t, int, taccComm_t, taccStream_t);
  taccResult_t (*reduce)(const void*, void*, size_t, taccDataType_t, taccRedOp_t, int, taccComm_t, taccStream_t);
  taccResult_t (*allGather)(const void*, void*, size_t, taccDataType_t, taccComm_t, taccStream_t);
  taccResult_t (*reduceScatter)(const void*, void*, size_t, taccDataType_t, taccRedOp_t, taccComm_t, taccStream_t);
  taccResult_t (*allToAll)(const void*, void*, size_t, taccDataType_t, taccComm_t, taccStream_t);
  taccResult_t (*gather)(const void*, void*, size_t, taccDataType_t, int, taccComm_t, taccStream_t);
  taccResult_t (*scatter)(const void*, void*, size_t, taccDataType_t, int, taccComm_t, taccStream_t);
  taccResult_t (*barrier)(taccComm_t, taccStream_t);
  taccResult_t (*send)(const void*, size_t, taccDataType_t, int, taccComm_t, taccStream_t);
  taccResult_t (*recv)(void*, size_t, taccDataType_t, int, taccComm_t, taccStream_t);
  taccResult_t (*groupStart)(void);
  taccResult_t (*groupEnd)(void);
  taccResult_t (*redOpCreatePreMulSum)(taccRedOp_t*, void*, taccDataType_t, taccScalarResidence_t, taccComm_t);
  taccResult_t (*redOpDestroy)(taccRedOp_t, taccComm_t);
  const char* (*commLastAlgorithm)(taccComm_t);
  const char* (*explain)(taccComm_t, const char*, size_t);
} functions = {
    taccGetVersion,
    taccGetErrorString,
    taccGetLastError,
    taccGetUniqueId,
    taccCommInitRank,
    taccCommInitRankConfig,
    taccCommInitEnv,
    taccGetLaunch,
    taccCommInitAll,
    taccCommSplit,
    taccCommCreateGroup,
    taccCommFinalize,
    taccCommDestroy,
    taccCommAbort,
    taccCommGetAsyncError,
    taccCommCount,
    taccCommUserRank,
    taccCommGetInfo,
    taccMemAlloc,
    taccMemReserve,
    taccMemUnshare,
    taccMemFree,
    taccCommRegister,
    taccCommDeregister,
    taccStreamCreate,
    taccStreamDestroy,
    taccStreamQuery,
    taccStreamSynchronize,
    taccStreamRequest,
    taccRequestTest,
    taccRequestWait,
    taccRequestWaitFor,
    taccRequestDestroy,
    taccEventCreate,
    taccEventRecord,
    taccEventQuery,
    taccEventSynchronize,
    taccEventDestroy,
    taccStreamWaitEvent,
    taccAllReduce,
    taccBroadcast,
    taccBcast,
    taccReduce,
    taccAllGather,
    taccReduceScatter,
    taccAllToAll,
    taccGather,
    taccScatter,
    taccBarrier,
    taccSend,
    taccRecv,
    taccGroupStart,
    taccGroupEnd,
    taccRedOpCreatePreMulSum,
    taccRedOpDestroy,
    taccCommLastAlgorithm,
    taccExplain,
};

_Static_assert(sizeof(taccUniqueId) == TACC_UNIQUE_ID_BYTES, "the id is its bytes");
_Static_assert(TACC_VERSION_CODE == 10000 * TACC_MAJOR + 100 * TACC_MINOR + TACC_PATCH, "the code is of the numbers");

/* Uses the values of every type; called from header_test.cpp. */
int headerIsC(void);
int headerIsC(void) {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  int version = 0;
  int wrong = 0;
  wrong += config.size != sizeof(config) || config.magic != TACC_CONFIG_MAGIC || config.algorithm != NULL;
  wrong += functions.getVersion(&version) != taccSuccess || version != TACC_VERSION_CODE;
  wrong += functions.barrier(NULL, NULL) != taccInvalidArgument;
  wrong += functions.getLastError(NULL)[0] == '\0';
  wrong += functions.allReduce(NULL, NULL, 0, taccBfloat16, taccAvg, NULL, NULL) != taccInvalidArgument;
  return wrong;
}
