#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tacc/tacc.h"
#include "worker/contestant.hpp"

namespace tacc::bench {

/// How tacc is to be used.
struct TaccSettings {
  bool libraryMemory = false;  ///< buffers from taccMemAlloc
  std::string algorithm;       ///< forced; "": the library chooses
  std::string explainTo;       ///< a file where rank 0 writes why calls run as they do; "": nowhere
  int streams = 0;             ///< to which calls are given, in turn; 0: run in the calling thread
  bool registers = false;      ///< private buffers are made shared
  double timeout = 0;          ///< seconds that a call may take; 0: the library's own
  bool isThread = false;       ///< among other ranks of its process
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
  void* allocate(size_t bytes, bool smallPages) override;
  void release(void* buffer, size_t bytes) override;
  int variants(const Task&) const override { return 1; }
  void run(const Call& call) override;
  void finish() override;
  void beginGroup() override;
  void endGroup() override;
  void barrier() override;
  std::string algorithm(const Call& last) const override;
  double cpuSeconds() const override;

 private:
  /// Calls that run one after the other, beside those of other lanes.
  struct Lane {
    taccComm_t comm = nullptr;
    taccStream_t stream = nullptr;
  };

  void require(taccResult_t result) const;
  void makeLanes();
  void run(const Call& call, const Lane& lane);
  void sendRecv(const Call& call, const Lane& lane);
  void runUnequal(const Call& call, const Lane& lane);

  int rank_;
  int ranks_;
  TaccSettings settings_;
  mutable std::set<std::pair<std::string, std::size_t>> explained_;  // what rank 0 has told
  taccComm_t comm_ = nullptr;
  std::vector<Lane> lanes_;  // the first is of comm_
  size_t next_ = 0;          // of the lanes
  bool isInGroup_ = false;   // whose calls all take one lane
  std::map<void*, void*> registrations_;
  /// True if join() has to form the communicator.
  bool joinsById_ = false;
  DrawnBlocks blocks_;  // of the last call whose blocks are unequal
  size_t blocksMean_ = 0;
  bool blocksAreToAll_ = false;
};

}  // namespace tacc::bench
