#include "algorithms/plan.hpp"

namespace tacc {

namespace {
constexpr std::string_view names[] = {"allreduce",     "broadcast", "reduce", "allgather",
                                      "reducescatter", "alltoall",  "gather", "scatter"};
}

std::string_view nameOf(Collective collective) noexcept {
  const auto index = static_cast<int>(collective);
  return index < collectiveCount ? names[index] : std::string_view("barrier");
}

std::optional<Collective> collectiveNamed(std::string_view name) noexcept {
  for (int i = 0; i < collectiveCount; ++i) {
    if (names[i] == name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

int inputBlocksOf(const Plan& plan, int rank) noexcept {
  const PlanRequest& request = plan.request;
  switch (request.collective) {
    case Collective::allReduce:
    case Collective::reduce:
      return plan.blocks;
    case Collective::broadcast:
      return rank == request.root ? plan.blocks : 0;
    case Collective::allGather:
    case Collective::gather:
      return 1;
    case Collective::reduceScatter:
    case Collective::allToAll:
      return request.ranks;
    case Collective::scatter:
      return rank == request.root ? request.ranks : 0;
    default:
      return 0;
  }
}

int outputBlocksOf(const Plan& plan, int rank) noexcept {
  const PlanRequest& request = plan.request;
  switch (request.collective) {
    case Collective::allReduce:
    case Collective::broadcast:
      return plan.blocks;
    case Collective::reduce:
      return rank == request.root ? plan.blocks : 0;
    case Collective::allGather:
    case Collective::allToAll:
      return request.ranks;
    case Collective::gather:
      return rank == request.root ? request.ranks : 0;
    case Collective::reduceScatter:
    case Collective::scatter:
      return 1;
    default:
      return 0;
  }
}

int inPlaceOutputOf(const Plan& plan, int rank, int inputBlock) noexcept {
  const PlanRequest& request = plan.request;
  switch (request.collective) {
    case Collective::allReduce:
    case Collective::allToAll:
      return inputBlock;
    case Collective::broadcast:
    case Collective::reduce:
      return rank == request.root ? inputBlock : -1;
    case Collective::allGather:
      return rank;
    case Collective::gather:
      return rank == request.root ? rank : -1;
    case Collective::reduceScatter:
    case Collective::scatter:
      return inputBlock == rank ? 0 : -1;
    default:
      return -1;
  }
}

}  // namespace tacc
