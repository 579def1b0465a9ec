#pragma once

#include <atomic>
#include <vector>

#include "worker/contestant.hpp"

namespace tacc::bench {

/// The least that an allreduce must do to memory: every rank, at the same time as the others, reads its 1/p of all p
/// inputs and writes its 1/p of all p outputs, over mappings that all ranks share, without any synchronisation between
/// ranks or calls. Its time is the machine's bound for allreduce on shared memory.
class BoundContestant : public Contestant {
 public:
  /// `memory`: an empty memfd that all ranks inherited; it must outlive this object.
  BoundContestant(int rank, int ranks, int memory);
  ~BoundContestant() override;
  BoundContestant(const BoundContestant&) = delete;
  BoundContestant& operator=(const BoundContestant&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  void join(const std::string&) override {}
  void* allocate(size_t bytes, bool smallPages) override;
  void release(void*, size_t) override {}
  /// Plain stores (0) and, where the machine has them, stores that bypass the cache (1).
  int variants(const Task& task) const override;
  void run(const Call& call) override;
  void barrier() override;
  std::string algorithm(const Call& last) const override;
  bool computesResult() const override { return false; }

 private:
  /// At the start of the memory: a barrier for all ranks.
  struct Control {
    std::atomic<int> arrived;
    std::atomic<int> generation;
  };
  struct Mapping {
    char* start;
    size_t bytes;
  };

  char* map(size_t offset, size_t bytes);

  int rank_;
  int ranks_;
  int memory_;
  std::vector<Mapping> mappings_;
  Control* control_;
  /// pools_[direction][rank], filled by the two calls of allocate.
  std::vector<std::vector<char*>> pools_;
};

}  // namespace tacc::bench
