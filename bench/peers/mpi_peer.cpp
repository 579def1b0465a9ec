/// One rank of an MPI library as a contestant of tacc_bench; built once for each library. Usage, under its mpiexec:
///   PROGRAM ADDRESS

#include <mpi.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "support/process.hpp"
#include "worker/element.hpp"
#include "worker/worker.hpp"

namespace tacc::bench {
namespace {

/// 16-bit floating types have no MPI type in these libraries; they can be moved as integers but not reduced.
MPI_Datatype mpiType(taccDataType_t type) {
  switch (type) {
    case taccInt8:
      return MPI_INT8_T;
    case taccUint8:
      return MPI_UINT8_T;
    case taccInt32:
      return MPI_INT32_T;
    case taccUint32:
      return MPI_UINT32_T;
    case taccInt64:
      return MPI_INT64_T;
    case taccUint64:
      return MPI_UINT64_T;
    case taccFloat32:
      return MPI_FLOAT;
    case taccFloat64:
      return MPI_DOUBLE;
    default:
      return MPI_UINT16_T;
  }
}

std::optional<MPI_Op> mpiOp(taccRedOp_t op) {
  switch (op) {
    case taccSum:
      return MPI_SUM;
    case taccProd:
      return MPI_PROD;
    case taccMax:
      return MPI_MAX;
    case taccMin:
      return MPI_MIN;
    default:
      return std::nullopt;
  }
}

void require(int result) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw std::runtime_error(std::string(text, static_cast<size_t>(length)));
}

class MpiContestant : public Contestant {
 public:
  MpiContestant() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    require(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    require(MPI_Comm_size(MPI_COMM_WORLD, &ranks_));
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  void join(const std::string&) override {}

  std::string share(const std::string& word) override {
    unsigned bytes = static_cast<unsigned>(word.size());
    require(MPI_Bcast(&bytes, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD));
    std::string text = word;
    text.resize(bytes);
    require(MPI_Bcast(text.data(), static_cast<int>(bytes), MPI_CHAR, 0, MPI_COMM_WORLD));
    return text;
  }

  int variants(const Task& task) const override {
    if (task.collective->shape(task.count, ranks_).largest() > INT_MAX) return 0;
    if (!task.collective->reduces) return 1;
    return task.type != taccFloat16 && task.type != taccBfloat16 && mpiOp(task.op) ? 1 : 0;
  }

  void run(const Call& call) override {
    const Task& task = *call.task;
    const int count = static_cast<int>(task.count);
    const MPI_Datatype type = mpiType(task.type);
    const MPI_Op op = task.collective->reduces ? *mpiOp(task.op) : MPI_OP_NULL;
    const MPI_Comm comm = MPI_COMM_WORLD;
    switch (task.collective->kind) {
      case Kind::allReduce:
        return require(MPI_Allreduce(call.send, call.recv, count, type, op, comm));
      case Kind::reduce:
        return require(MPI_Reduce(call.send, call.recv, count, type, op, task.root, comm));
      case Kind::reduceScatter:
        return require(MPI_Reduce_scatter_block(call.send, call.recv, count, type, op, comm));
      case Kind::allGather:
        return require(MPI_Allgather(call.send, count, type, call.recv, count, type, comm));
      case Kind::allToAll:
        return require(MPI_Alltoall(call.send, count, type, call.recv, count, type, comm));
      case Kind::gather:
        return require(MPI_Gather(call.send, count, type, call.recv, count, type, task.root, comm));
      case Kind::scatter:
        return require(MPI_Scatter(call.send, count, type, call.recv, count, type, task.root, comm));
      case Kind::scan:
        return require(MPI_Scan(call.send, call.recv, count, type, op, comm));
      case Kind::exscan:
        return require(MPI_Exscan(call.send, call.recv, count, type, op, comm));
      case Kind::sendRecv:
        return require(MPI_Sendrecv(call.send, count, type, (rank_ + 1) % ranks_, 0, call.recv, count, type,
                                    (rank_ + ranks_ - 1) % ranks_, 0, comm, MPI_STATUS_IGNORE));
      case Kind::allGatherV:
      case Kind::reduceScatterV:
      case Kind::gatherV:
      case Kind::scatterV:
      case Kind::allToAllV:
        return runUnequal(call, type, op);
      case Kind::broadcast:
        return broadcast(call, type);
      case Kind::barrier:
        return barrier();
    }
  }

  void barrier() override { require(MPI_Barrier(MPI_COMM_WORLD)); }

 private:
  void runUnequal(const Call& call, MPI_Datatype type, MPI_Op op) {
    const Task& task = *call.task;
    const Kind kind = task.collective->kind;
    const bool toAll = kind == Kind::allToAllV;
    if (counts_.empty() || mean_ != task.count || areToAll_ != toAll) {
      const DrawnBlocks blocks = drawnBlocks(task.count, toAll ? rank_ : 0, ranks_);
      counts_.assign(blocks.counts.begin(), blocks.counts.end());
      places_.assign(blocks.places.begin(), blocks.places.end());
      mean_ = task.count;
      areToAll_ = toAll;
    }
    const int *counts = counts_.data(), *places = places_.data(), own = counts[rank_];
    const MPI_Comm comm = MPI_COMM_WORLD;
    if (kind == Kind::allGatherV)
      return require(MPI_Allgatherv(call.send, own, type, call.recv, counts, places, type, comm));
    if (kind == Kind::reduceScatterV) return require(MPI_Reduce_scatter(call.send, call.recv, counts, type, op, comm));
    if (kind == Kind::gatherV)
      return require(MPI_Gatherv(call.send, own, type, call.recv, counts, places, type, task.root, comm));
    if (kind == Kind::scatterV)
      return require(MPI_Scatterv(call.send, counts, places, type, call.recv, own, type, task.root, comm));
    require(MPI_Alltoallv(call.send, counts, places, type, call.recv, counts, places, type, comm));
  }

  /// MPI broadcasts within one buffer per rank, so for the out-of-place result that all contestants must produce the
  /// root copies its input to its output (Gloo does so by itself).
  void broadcast(const Call& call, MPI_Datatype type) const {
    const Task& task = *call.task;
    const int count = static_cast<int>(task.count);
    if (rank_ != task.root) return require(MPI_Bcast(call.recv, count, type, task.root, MPI_COMM_WORLD));
    require(MPI_Bcast(const_cast<void*>(call.send), count, type, task.root, MPI_COMM_WORLD));
    std::memcpy(call.recv, call.send, task.count * elementSize(task.type));
  }

  int rank_ = 0;
  int ranks_ = 1;
  std::vector<int> counts_, places_;  // of the task's blocks of unequal lengths
  size_t mean_ = 0;
  bool areToAll_ = false;
};

}  // namespace
}  // namespace tacc::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: mpiexec ... %s ADDRESS (tacc_bench starts this program)\n", argv[0]);
    return 2;
  }
  tacc::tools::dieWithParent();
  MPI_Init(&argc, &argv);
  int status = 1;
  {
    tacc::bench::MpiContestant contestant;
    status = tacc::bench::serveCoordinator(contestant, argv[1]);
  }
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
