// Drawn programs as strangers write them: each rank tells at the end a number that all that it received went into, so
// that a run with the library can be compared with one without. Nothing here knows of the library, and nothing is
// received twice.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "draws.hpp"

namespace tacc::test {

/// What went into it, in its order.
class Digest {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* const at = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ at[i]) * 0x100000001b3U;
  }
  void add(std::int64_t number) { add(&number, sizeof number); }
  std::uint64_t value() const { return value_; }
  /// What has gone into it until `what`, for who looks where two runs part.
  void mark(const std::string& what) const {
    if (traceOfRank >= 0)
      std::fprintf(stderr, "rank %d after %s: %016llx\n", traceOfRank, what.c_str(),
                   static_cast<unsigned long long>(value_));
  }
  static inline int traceOfRank = -1;  // where this process tells so; else -1

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

/// Persistent collectives are made as blocking ones, in the order in which they were made: for an MPI that does them
/// wrong itself.
inline bool hasNoPersistentOnes = false;

/// A communicator as one rank has it.
struct Member {
  MPI_Comm comm = MPI_COMM_NULL;  // null on ranks that are no part of it
  int rank = 0, ranks = 1;
  bool isPart() const { return comm != MPI_COMM_NULL; }
};

/// What is under way at a time. Requests stand at one place until all are done.
struct Batch {
  /// What is made once and started more often. `fill`: what is sent in the next round. `run`: the whole call, where it
  /// has no request.
  struct Persistent {
    std::size_t at;
    std::function<void(int round)> fill;
    std::function<void(Digest&)> tell;
    std::function<void()> run;
  };
  std::vector<MPI_Request> requests;
  std::vector<bool> isReceive;  // its status says something
  std::vector<Persistent> persistent;
  std::vector<std::function<void(Digest&)>> tell;  // once all are done

  std::size_t add(MPI_Request request, bool receives = false) {
    requests.push_back(request);
    isReceive.push_back(receives);
    return requests.size() - 1;
  }
};

/// Makes a collective on `member`, blocking or into `batch`. `draws`: the same on all of its ranks.
void drawCollective(const Member& member, Draws& draws, Batch& batch, Digest& digest);

/// Messages between the ranks of `member`, which are received within, or in `batch`. The same draws on all ranks;
/// `own`: a rank's own, which decide nothing that it tells.
void drawMessages(const Member& member, Draws& draws, std::mt19937& own, Batch& batch, Digest& digest);

/// Starts what is persistent, completes all in forms and an order of this rank's own, and tells what came; all rounds.
void completeBatch(Batch& batch, int rounds, std::mt19937& own, Digest& digest);

}  // namespace tacc::test
