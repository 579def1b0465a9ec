// The C functions of the collectives whose blocks have unequal lengths.
#include "api/submit.hpp"

using tacc::Call;
using tacc::Collective;
using tacc::UnequalArguments;

taccResult_t taccAllGatherV(const void* sendbuff, void* recvbuff, const size_t* recvcounts, const size_t* displs,
                            taccDataType_t datatype, taccComm_t comm, taccStream_t stream) {
  return tacc::submitUnequal("taccAllGatherV", comm, stream,
                             Call{Collective::allGather, sendbuff, recvbuff, 0, datatype},
                             {.receiveCounts = recvcounts, .receiveDisplacements = displs});
}

taccResult_t taccReduceScatterV(const void* sendbuff, void* recvbuff, const size_t* recvcounts, const size_t* displs,
                                taccDataType_t datatype, taccRedOp_t op, taccComm_t comm, taccStream_t stream) {
  return tacc::submitUnequal("taccReduceScatterV", comm, stream,
                             Call{Collective::reduceScatter, sendbuff, recvbuff, 0, datatype, op},
                             {.sendCounts = recvcounts, .sendDisplacements = displs});
}

taccResult_t taccGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                         const size_t* displs, taccDataType_t datatype, int root, taccComm_t comm,
                         taccStream_t stream) {
  return tacc::submitUnequal("taccGatherV", comm, stream,
                             Call{Collective::gather, sendbuff, recvbuff, 0, datatype, taccSum, root},
                             {.sendCount = sendcount, .receiveCounts = recvcounts, .receiveDisplacements = displs});
}

taccResult_t taccScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* displs, void* recvbuff,
                          size_t recvcount, taccDataType_t datatype, int root, taccComm_t comm, taccStream_t stream) {
  return tacc::submitUnequal("taccScatterV", comm, stream,
                             Call{Collective::scatter, sendbuff, recvbuff, 0, datatype, taccSum, root},
                             {.sendCounts = sendcounts, .sendDisplacements = displs, .receiveCount = recvcount});
}

taccResult_t taccAllToAllV(const void* sendbuff, const size_t* sendcounts, const size_t* senddispls, void* recvbuff,
                           const size_t* recvcounts, const size_t* recvdispls, taccDataType_t datatype, taccComm_t comm,
                           taccStream_t stream) {
  return tacc::submitUnequal("taccAllToAllV", comm, stream, Call{Collective::allToAll, sendbuff, recvbuff, 0, datatype},
                             {.sendCounts = sendcounts,
                              .sendDisplacements = senddispls,
                              .receiveCounts = recvcounts,
                              .receiveDisplacements = recvdispls});
}
