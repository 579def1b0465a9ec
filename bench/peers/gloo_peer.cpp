/// One rank of Gloo as a contestant of tacc_bench, over TCP, the only transport that Gloo has, also inside a node.
/// Usage: PROGRAM ADDRESS RANK RANKS DIRECTORY INTERFACE, where DIRECTORY is empty and seen by all ranks.

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/process.hpp"
#include "worker/element.hpp"
#include "worker/worker.hpp"

namespace tacc::bench {
namespace {

using Reduction = void (*)(void*, const void*, const void*, size_t);

template <typename T>
Reduction reductionOf(taccRedOp_t op) {
  switch (op) {
    case taccSum:
      return gloo::sum<T>;
    case taccProd:
      return gloo::product<T>;
    case taccMax:
      return gloo::max<T>;
    case taccMin:
      return gloo::min<T>;
    default:
      return nullptr;
  }
}

/// Gloo's own kernels; nullptr where it has none.
Reduction reductionOf(taccDataType_t type, taccRedOp_t op) {
  switch (type) {
    case taccInt8:
      return reductionOf<int8_t>(op);
    case taccUint8:
      return reductionOf<uint8_t>(op);
    case taccInt32:
      return reductionOf<int32_t>(op);
    case taccUint32:
      return reductionOf<uint32_t>(op);
    case taccInt64:
      return reductionOf<int64_t>(op);
    case taccUint64:
      return reductionOf<uint64_t>(op);
    case taccFloat16:
      return reductionOf<gloo::float16>(op);
    case taccFloat32:
      return reductionOf<float>(op);
    case taccFloat64:
      return reductionOf<double>(op);
    default:
      return nullptr;
  }
}

/// An element of `size` bytes, for the interfaces that ask for a type only to know its size.
template <size_t size>
struct Opaque {
  char bytes[size];
};

class GlooContestant : public Contestant {
 public:
  GlooContestant(int rank, int ranks, std::string directory, std::string interface)
      : rank_(rank), ranks_(ranks), directory_(std::move(directory)), interface_(std::move(interface)) {}

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void join(const std::string&) override {
    gloo::transport::tcp::attr place;
    place.iface = interface_;
    auto device = gloo::transport::tcp::CreateDevice(place);
    gloo::rendezvous::FileStore store(directory_);
    const auto context = std::make_shared<gloo::rendezvous::Context>(rank_, ranks_);
    context->connectFullMesh(store, device);
    context_ = context;
  }

  /// Allreduce has a ring (0) and a bcube (1). Reduce-scatter exists only as a fixed object that destroys its input, so
  /// it is not offered; scans do not exist.
  int variants(const Task& task) const override {
    const Kind kind = task.collective->kind;
    // An empty message is no message to Gloo's buffers.
    if (kind == Kind::barrier) return 1;
    if (task.count == 0 || kind == Kind::reduceScatter || task.collective->isUnequal || task.collective->isPrefix)
      return 0;
    if (task.collective->reduces && reductionOf(task.type, task.op) == nullptr) return 0;
    return kind == Kind::allReduce ? 2 : 1;
  }

  void run(const Call& call) override {
    switch (elementSize(call.task->type)) {
      case 1:
        return runAs<Opaque<1>>(call);
      case 2:
        return runAs<Opaque<2>>(call);
      case 4:
        return runAs<Opaque<4>>(call);
      default:
        return runAs<Opaque<8>>(call);
    }
  }

  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  std::string algorithm(const Call& last) const override {
    return last.task->collective->kind != Kind::allReduce ? "" : last.variant == 0 ? "ring" : "bcube";
  }

 private:
  template <typename T>
  void runAs(const Call& call) {
    const Task& task = *call.task;
    T* send = static_cast<T*>(const_cast<void*>(call.send));
    T* recv = static_cast<T*>(call.recv);
    const Shape shape = task.collective->shape(task.count, ranks_);
    switch (task.collective->kind) {
      case Kind::allReduce:
        return allReduce(call, send, recv);
      case Kind::reduce: {
        gloo::ReduceOptions options(context_);
        options.setInput(send, task.count);
        options.setOutput(recv, task.count);
        options.setRoot(task.root);
        options.setReduceFunction(reductionOf(task.type, task.op));
        return gloo::reduce(options);
      }
      case Kind::barrier:
        return barrier();
      case Kind::broadcast: {
        gloo::BroadcastOptions options(context_);
        if (rank_ == task.root) options.setInput(send, task.count);
        options.setOutput(recv, task.count);
        options.setRoot(task.root);
        return gloo::broadcast(options);
      }
      case Kind::allGather: {
        gloo::AllgatherOptions options(context_);
        options.setInput(send, task.count);
        options.setOutput(recv, shape.recvCount);
        return gloo::allgather(options);
      }
      case Kind::allToAll: {
        gloo::AlltoallOptions options(context_);
        options.setInput(send, shape.sendCount);
        options.setOutput(recv, shape.recvCount);
        return gloo::alltoall(options);
      }
      case Kind::gather: {
        gloo::GatherOptions options(context_);
        options.setInput(send, task.count);
        if (rank_ == task.root) options.setOutput(recv, shape.recvCount);
        options.setRoot(task.root);
        return gloo::gather(options);
      }
      case Kind::scatter:
        return scatter(task, send, recv);
      case Kind::sendRecv:
        return sendRecv(send, recv, task.count * sizeof(T));
      case Kind::allGatherV:
      case Kind::reduceScatterV:
      case Kind::gatherV:
      case Kind::scatterV:
      case Kind::allToAllV:
      case Kind::reduceScatter:
      case Kind::scan:
      case Kind::exscan:
        throw std::logic_error("Gloo has no such collective");
    }
  }

  template <typename T>
  void allReduce(const Call& call, T* send, T* recv) {
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    gloo::AllreduceOptions options(context_);
    options.setInput(send, call.task->count);
    options.setOutput(recv, call.task->count);
    options.setReduceFunction(reductionOf(call.task->type, call.task->op));
    options.setAlgorithm(call.variant == 0 ? Algorithm::RING : Algorithm::BCUBE);
    gloo::allreduce(options);
  }

  template <typename T>
  void scatter(const Task& task, T* send, T* recv) {
    gloo::ScatterOptions options(context_);
    std::vector<T*> parts;
    for (int r = 0; r < ranks_; ++r) parts.push_back(send + static_cast<size_t>(r) * task.count);
    if (rank_ == task.root) options.setInputs(parts, task.count);
    options.setOutput(recv, task.count);
    options.setRoot(task.root);
    gloo::scatter(options);
  }

  void sendRecv(void* send, void* recv, size_t bytes) {
    constexpr uint64_t slot = 0x7acc;
    if (ranks_ == 1) {
      std::memcpy(recv, send, bytes);
      return;
    }
    const auto out = context_->createUnboundBuffer(send, bytes);
    const auto in = context_->createUnboundBuffer(recv, bytes);
    in->recv((rank_ + ranks_ - 1) % ranks_, slot);
    out->send((rank_ + 1) % ranks_, slot);
    in->waitRecv();
    out->waitSend();
  }

  int rank_;
  int ranks_;
  std::string directory_;
  std::string interface_;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace
}  // namespace tacc::bench

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: %s ADDRESS RANK RANKS DIRECTORY INTERFACE (tacc_bench starts this program)\n",
                 argv[0]);
    return 2;
  }
  tacc::tools::dieWithParent();
  tacc::bench::GlooContestant contestant(std::atoi(argv[2]), std::atoi(argv[3]), argv[4], argv[5]);
  return tacc::bench::serveCoordinator(contestant, argv[1]);
}
