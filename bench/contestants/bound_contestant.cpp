#include "contestants/bound_contestant.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "contestants/bound_kernel.hpp"
#include "worker/element.hpp"

namespace tacc::bench {
namespace {

constexpr size_t hugePage = size_t{2} << 20;

[[noreturn]] void failWithErrno(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

BoundContestant::BoundContestant(int rank, int ranks, int memory) : rank_(rank), ranks_(ranks), memory_(memory) {
  // Every rank sets the same size, so the order does not matter.
  if (::ftruncate(memory, static_cast<off_t>(hugePage)) != 0) failWithErrno("cannot size the bound's memory");
  control_ = reinterpret_cast<Control*>(map(0, hugePage));
}

BoundContestant::~BoundContestant() {
  for (const Mapping& mapping : mappings_) ::munmap(mapping.start, mapping.bytes);
}

char* BoundContestant::map(size_t offset, size_t bytes) {
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, static_cast<off_t>(offset));
  if (start == MAP_FAILED) failWithErrno("cannot map the bound's memory");
  ::madvise(start, bytes, MADV_HUGEPAGE);
  mappings_.push_back({static_cast<char*>(start), bytes});
  return static_cast<char*>(start);
}

void* BoundContestant::allocate(size_t bytes, bool) {
  const size_t rounded = (bytes + hugePage - 1) / hugePage * hugePage;
  const size_t total = rounded * static_cast<size_t>(ranks_);
  const size_t offset = hugePage + pools_.size() * total;
  // A rank that is still at the first direction must not cut off the second, so both are sized at once.
  if (::ftruncate(memory_, static_cast<off_t>(hugePage + 2 * total)) != 0)
    failWithErrno("cannot size the bound's memory");
  char* start = map(offset, total);
  std::vector<char*> pools;
  for (size_t r = 0; r < static_cast<size_t>(ranks_); ++r) pools.push_back(start + r * rounded);
  pools_.push_back(pools);
  char* own = pools[static_cast<size_t>(rank_)];
  std::memset(own, 0, bytes);
  barrier();
  // Entering the other ranks' pages into this rank's page table is not part of what is measured.
  volatile char sink = 0;
  for (size_t at = 0; at < total; at += 4096) sink = start[at];
  static_cast<void>(sink);
  return own;
}

int BoundContestant::variants(const Task& task) const {
  return task.collective->kind == Kind::allReduce ? (hasStreamingStores() ? 2 : 1) : 0;
}

void BoundContestant::run(const Call& call) {
  const size_t rank = static_cast<size_t>(rank_);
  const size_t ranks = static_cast<size_t>(ranks_);
  const size_t bytes = call.task->count * elementSize(call.task->type);
  // Parts are whole cache lines, so that no two ranks write one.
  const size_t lines = (bytes + 63) / 64;
  const size_t begin = lines * rank / ranks * 64;
  const size_t end = lines * (rank + 1) / ranks * 64;
  const size_t sendOffset = static_cast<size_t>(static_cast<const char*>(call.send) - pools_[0][rank]);
  const size_t recvOffset = static_cast<size_t>(static_cast<char*>(call.recv) - pools_[1][rank]);
  const float* sources[mostBoundRanks];
  float* targets[mostBoundRanks];
  for (size_t r = 0; r < ranks; ++r) {
    sources[r] = reinterpret_cast<const float*>(pools_[0][r] + sendOffset + begin);
    targets[r] = reinterpret_cast<float*>(pools_[1][r] + recvOffset + begin);
  }
  reduceAndDistribute(sources, targets, ranks, (end - begin) / sizeof(float), call.variant == 1);
}

void BoundContestant::barrier() {
  const int generation = control_->generation.load();
  if (control_->arrived.fetch_add(1) + 1 == ranks_) {
    control_->arrived.store(0);
    control_->generation.store(generation + 1);
    return;
  }
  while (control_->generation.load() == generation) ::sched_yield();
}

std::string BoundContestant::algorithm(const Call& last) const { return last.variant == 1 ? "streaming" : "plain"; }

}  // namespace tacc::bench
