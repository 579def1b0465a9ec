// The run of a call over several hosts in chunks, several of which are under way together.
//
// A network program runs chunk by chunk. Where numbers are made or rounded on the way (streamed sums, sums of 16-bit
// numbers), that happens between the chunks of one run: while some are under way, the next are made and those that are
// complete are taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/net/network_call.hpp"
#include "engine/net/network_programs.hpp"
#include "engine/net/network_run.hpp"
#include "engine/net/network_wait.hpp"
#include "engine/net/plan_ranks.hpp"

namespace tacc {

class ChunkedRun {
 public:
  static constexpr std::size_t chunksUnderWay = 4;  // of a long call

  /// `layout`: as in NetworkPrograms.
  ChunkedRun(NetworkPeers& peers, NetworkWait& wait, PlanRanks ranks, PlanRequest layout)
      : run_(peers), wait_(wait), ranks_(std::move(ranks)), programs_(std::move(layout)) {}

  const PlanRanks& ranks() const noexcept { return ranks_; }
  NetworkPrograms& programs() noexcept { return programs_; }
  /// What this rank runs of a call's plan.
  const NetworkProgram& programOf(const NetworkCall& call, bool inPlace) {
    return programs_.whole(call.algorithm, call.call.collective, call.root, ranks_.own(call.order), inPlace);
  }

  /// Runs belong to this call of the communicator from now on, which the ranks compare.
  void open(std::uint64_t signature, std::uint32_t number) noexcept {
    signature_ = signature;
    number_ = number;
  }

  /// Those of the next run, to be filled.
  std::vector<NetworkChunk>& chunks() noexcept { return chunks_; }
  /// What is run of `call` besides.
  NetworkWork workOf(const Call& call, PlanOrder order, const NetworkProgram& program) const;
  /// Runs it to its end, all chunks from the beginning on.
  void run(const NetworkWork& work);
  /// Runs it to its end; `before(k)` is called before chunk k goes out, `after(k)` when it is complete.
  void run(const NetworkWork& work, const std::function<void(std::size_t)>& before,
           const std::function<void(std::size_t)>& after);

 private:
  /// Chunks below `released` may start at once.
  void start(const NetworkWork& work, std::size_t released);
  void finish();

  NetworkRun run_;
  NetworkWait& wait_;
  PlanRanks ranks_;
  NetworkPrograms programs_;
  std::vector<NetworkChunk> chunks_;
  std::uint64_t signature_ = 0;
  std::uint32_t number_ = 0;
};

}  // namespace tacc
