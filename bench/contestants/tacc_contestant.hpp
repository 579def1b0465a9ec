#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tacc/tacc.h"
#include "worker/contestant.hpp"

namespace tacc::bench {

/// How tacc is to be used.
struct TaccSettings {
  bool libraryMemory = false;  ///< buffers from taccMemAlloc
  std::string algorithm;       ///< forced; "": the library chooses
  std::string explainTo;       ///< a file where rank 0 writes why calls run as they do; "": nowhere
};

/// One rank of tacc, through its public C interface only.
class TaccContestant : public Contestant {
 public:
  /// A rank that joins by unique id.
  TaccContestant(int rank, int ranks, TaccSettings settings);
  /// A rank of a communicator that taccCommInitAll made.
  TaccContestant(taccComm_t comm, int rank, int ranks, TaccSettings settings);
  ~TaccContestant() override;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string secret() override;
  void join(const std::string& secret) override;
  void* allocate(size_t bytes) override;
  void release(void* buffer, size_t bytes) override;
  int variants(const Task&) const override { return 1; }
  void run(const Call& call) override;
  void barrier() override;
  std::string algorithm(const Call& last) const override;
  double cpuSeconds() const override;

 private:
  void require(taccResult_t result) const;
  void sendRecv(const Call& call);

  int rank_;
  int ranks_;
  TaccSettings settings_;
  mutable std::set<std::pair<std::string, std::size_t>> explained_;  // what rank 0 has told
  taccComm_t comm_ = nullptr;
  /// True if join() has to form the communicator.
  bool joinsById_ = false;
};

}  // namespace tacc::bench
