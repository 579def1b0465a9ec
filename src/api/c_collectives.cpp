// The C functions of the collectives, of equal and of unequal blocks, and of sends and receives.
#include "api/submit.hpp"

using tacc::ArgumentNames;
using tacc::Call;
using tacc::Collective;

namespace {
constexpr ArgumentNames bcastNames{.send = "buff", .receive = "buff", .count = "count"};
constexpr ArgumentNames allGatherNames{.send = "sendbuff", .receive = "recvbuff", .count = "sendcount"};
constexpr ArgumentNames reduceScatterNames{.send = "sendbuff", .receive = "recvbuff", .count = "recvcount"};
}  // namespace

taccResult_t taccAllReduce(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, taccRedOp_t op,
                           taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::allReduce>("taccAllReduce", sendbuff, recvbuff, count, datatype, op, 0,
                                                       comm, stream);
}

taccResult_t taccBroadcast(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, int root,
                           taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::broadcast>("taccBroadcast", sendbuff, recvbuff, count, datatype, taccSum,
                                                       root, comm, stream);
}

taccResult_t taccBcast(void* buff, size_t count, taccDataType_t datatype, int root, taccComm_t comm,
                       taccStream_t stream) {
  return tacc::submitCollective<Collective::broadcast>("taccBcast", buff, buff, count, datatype, taccSum, root, comm,
                                                       stream, bcastNames);
}

taccResult_t taccReduce(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, taccRedOp_t op,
                        int root, taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::reduce>("taccReduce", sendbuff, recvbuff, count, datatype, op, root, comm,
                                                    stream);
}

taccResult_t taccAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, taccDataType_t datatype,
                           taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::allGather>("taccAllGather", sendbuff, recvbuff, sendcount, datatype,
                                                       taccSum, 0, comm, stream, allGatherNames);
}

taccResult_t taccReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, taccDataType_t datatype,
                               taccRedOp_t op, taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::reduceScatter>("taccReduceScatter", sendbuff, recvbuff, recvcount, datatype,
                                                           op, 0, comm, stream, reduceScatterNames);
}

taccResult_t taccAllToAll(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, taccComm_t comm,
                          taccStream_t stream) {
  return tacc::submitCollective<Collective::allToAll>("taccAllToAll", sendbuff, recvbuff, count, datatype, taccSum, 0,
                                                      comm, stream);
}

taccResult_t taccGather(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, int root,
                        taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::gather>("taccGather", sendbuff, recvbuff, count, datatype, taccSum, root,
                                                    comm, stream);
}

taccResult_t taccScatter(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, int root,
                         taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::scatter>("taccScatter", sendbuff, recvbuff, count, datatype, taccSum, root,
                                                     comm, stream);
}

taccResult_t taccScan(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, taccRedOp_t op,
                      taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::scan>("taccScan", sendbuff, recvbuff, count, datatype, op, 0, comm, stream);
}

taccResult_t taccExscan(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, taccRedOp_t op,
                        taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::exscan>("taccExscan", sendbuff, recvbuff, count, datatype, op, 0, comm,
                                                    stream);
}

taccResult_t taccBarrier(taccComm_t comm, taccStream_t stream) {
  return tacc::submitCollective<Collective::barrier>("taccBarrier", nullptr, nullptr, 0, taccFloat32, taccSum, 0, comm,
                                                     stream);
}

taccResult_t taccSend(const void* sendbuff, size_t count, taccDataType_t datatype, int peer, taccComm_t comm,
                      taccStream_t stream) {
  return tacc::submitExchange("taccSend", comm, stream, {true, peer, const_cast<void*>(sendbuff), count, datatype});
}

taccResult_t taccRecv(void* recvbuff, size_t count, taccDataType_t datatype, int peer, taccComm_t comm,
                      taccStream_t stream) {
  return tacc::submitExchange("taccRecv", comm, stream, {false, peer, recvbuff, count, datatype});
}

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
