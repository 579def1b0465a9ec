// The communicator of ranks on several hosts: shared memory inside each host, messages between hosts.
//
// A call is one plan over all ranks. Its messages between ranks of one host go through the memory that these share, the
// others over the network; long calls are cut into chunks, several of which are under way together. Where numbers are
// made or rounded on the way (streamed sums, sums of 16-bit numbers), that happens between the chunks of such plans.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/result_split.hpp"
#include "comm/cluster/network_endpoint.hpp"
#include "comm/cluster/online_tuner.hpp"
#include "comm/control/control_plane.hpp"
#include "comm/hosts.hpp"
#include "comm/joined_communicator.hpp"
#include "comm/node/node_communicator.hpp"
#include "engine/net/network_pairs.hpp"
#include "engine/net/network_run.hpp"
#include "selection/network_selector.hpp"
#include "transports/shm/library_window.hpp"

namespace tacc {

/// How a rank came into a communicator over several hosts.
struct ClusterMembership {
  std::vector<RankIdentity> who;
  std::unique_ptr<NodeCommunicator> node;  // null where the rank is alone on its host
  std::unique_ptr<ControlPlane> control;
  std::unique_ptr<NetworkTransport> transport;
  std::string transportName;
  std::string transportSettings;  // that it was chosen by
  NetworkPatience patience;
  NetworkSpeed speed;
  std::shared_ptr<const Topology> topology;
  std::vector<int> walk;  // hosts, by their lowest ranks' order, in the order of the topology; equal on all ranks
  std::string trace;      // TACC_TRACE
  TuningPlace place;
  std::shared_ptr<const Tuning> tuning;  // null: none
};

class ClusterCommunicator final : public JoinedCommunicator {
 public:
  ClusterCommunicator(ClusterMembership membership, int rank, int ranks, CommConfig config);
  ~ClusterCommunicator() override;

  void runNow(const Call& call) override;
  void exchangeNow(std::span<const PointToPoint> operations) override;
  std::unique_ptr<Communicator> split(int color, int key, const CommConfig& config) override;
  void abort(const std::string& why) noexcept override;
  void failWith(const Error& error) noexcept override;
  taccResult_t asyncError() const noexcept override;
  void registerBuffer(void* buffer, std::size_t bytes) override;
  void deregisterBuffer(void* buffer) override;
  BucketSizes bucketSizes(std::size_t stepBytes) override;
  std::string explain(Collective collective, std::size_t bytes) override;
  std::vector<CallRoute> routes(Collective collective, std::size_t bytes) override;
  std::string lastAlgorithm() const override { return lastAlgorithm_; }
  std::shared_ptr<const Topology> topology() const override { return topology_; }
  std::string transportName() const override { return transportName_; }
  Standing standing() const override;

 private:
  static constexpr std::size_t chunksUnderWay = 4;  // of a long call

  /// A plan's run, as the engine is told of it.
  struct PlanRun {
    Collective collective;
    const Algorithm& algorithm;
    const std::vector<int>& members;  // all ranks, in the order in which the plan numbers them
    int root;                         // as the plan numbers it
    bool inPlace;
    std::size_t count;  // split: elements; stack: elements of a block
    std::vector<NetworkChunk> chunks;
    bool copiesBlocks = false;  // as in NetworkWork
    std::size_t distance = 0;   // of a stack: elements from a block of a chunk's buffers to the next; 0: count
    const NetworkBlocks* blocks = nullptr;    // of unequal lengths; null: all have `count` elements
    const NetworkProgram* program = nullptr;  // a part of the plan; null: the whole
    std::size_t cutBytes = 0;                 // as in NetworkWork
  };

  /// Messages to ranks of this host go through its shared memory.
  std::unique_ptr<NetworkTransport> withLocalMessages(std::unique_ptr<NetworkTransport> network) const;
  /// The board that the ranks of this host share.
  PriceBoard priceBoard();
  void runCall(const Call& call);
  void runParts(const Call& call);
  void runCollective(const Call& call);
  /// Replaces the times of the last calls by those that all ranks agree on.
  void agreeOnTimes();
  /// An allreduce in two parts (algorithms/result_split.hpp): sums, then results.
  struct SplitProgram {
    NetworkProgram sums, results;
    std::vector<ResultSplit::Blocks> complete;
  };
  const SplitProgram& splitProgramFor(const Algorithm& algorithm, int member);
  /// Whether the results of an allreduce of this number of 16-bit elements travel as 16 bits, in a separate part.
  bool gathersHalfWidth(std::size_t numbers);
  std::string explainHalfWidth(std::size_t bytes);
  void allReduceHalfWidth(const Call& call);
  void allReducePartHalfWidth(const Call& call);
  /// Numbers are made, and sums taken, while the chunks before and after are under way.
  void allReduceStreamed(const Call& call);
  /// The same of numbers that are all made first, as their sums are in the order of the ranks.
  void reduceStreamedInRankOrder(const Call& call);
  void runPlan(const Call& call);
  void barrier();
  /// Blocks of unequal lengths (cluster_unequal.cpp).
  void runUnequal(const Call& call);
  /// Throws where what this rank counts for a rank, `all`, is not what that counts for itself.
  void compareLengths(Collective collective, const BlockRow& all, std::size_t own);
  void planUnequal(const Call& call, const BlockRow& all);
  /// Gather, scatter and alltoall, where a rank knows the lengths of none but its own blocks.
  void exchangeUnequal(const Call& call);

  /// Whether times correct the choice: a forced algorithm stays, and a reproducible communicator does not adapt.
  bool isDynamic() const noexcept { return config().dynamic && !config().isReproducible && forced().empty(); }
  /// The algorithm of a call's collective. `root` as the plans number it, `bytes` as in NetworkSelector::choose(): what
  /// travels, where the call's own bytes are what a tuning file knows it by.
  const Algorithm& algorithmFor(const Call& call, int root, std::size_t bytes, const PlanDemands& demands = {});
  /// Elements of a chunk of such a call, which this rank takes part in as number `member`.
  std::size_t chunkOf(const Algorithm& algorithm, const Call& call, int root, int member, bool inPlace);
  /// Begins a run; chunks below `released` may start at once.
  void start(const Call& call, PlanRun run, std::size_t released);
  void finish();
  /// Runs the plan that start() has begun with no chunk released. Calls `before(k)`, then releases chunk k; when a
  /// chunk is complete, `after(k)`. So both go on while other chunks are under way. Each may be empty.
  void runChunks(std::size_t chunks, const std::function<void(std::size_t)>& before,
                 const std::function<void(std::size_t)>& after);
  void exchangeAll(std::span<const PointToPoint> operations);
  /// What rank `member` of the plan runs; made at first use.
  const NetworkProgram& programFor(const Algorithm& algorithm, Collective collective, int root, int member,
                                   bool inPlace);
  bool isAlone() const noexcept { return node_ == nullptr; }
  std::string describeCurrent() const;
  /// Tells all ranks of the exception that is being handled, and throws it as an Error.
  [[noreturn]] void reportFailure();
  /// Sets the asynchronous error and tells all ranks; the first time only.
  void tell(const Error& error) const noexcept;
  /// The first of all is what every later call ends with.
  void noteFailure(const Error& error) const noexcept;
  std::optional<Error> cause() const;
  [[noreturn]] void failAgain() const;
  std::byte* workspace(std::size_t bytes);

  std::vector<RankIdentity> who_;
  HostMap hosts_;
  std::vector<int> everybody_;  // all ranks, in the order of the hosts
  std::vector<int> inOrder_;    // all ranks, as they are numbered
  int host_;
  int local_;
  std::unique_ptr<NodeCommunicator> node_;
  std::unique_ptr<ControlPlane> control_;
  NetworkEndpoint endpoint_;
  NetworkRun run_;
  NetworkPairs pairs_;
  NetworkActivity* active_ = nullptr;  // goes on while this rank waits inside its host
  std::string transportName_, transportSettings_;
  NetworkSpeed speed_;
  std::shared_ptr<const Topology> topology_;
  NetworkSelector selector_;
  /// The place of rank 0 in the order of the hosts, from which calls are explained.
  int placeOfRank0() const;
  OnlineTuner tuner_;  // may replace what it chooses
  std::map<std::tuple<const Algorithm*, Collective, int, int, bool>, NetworkProgram> programs_;
  std::map<const Algorithm*, SplitProgram> splitPrograms_;
  std::vector<std::byte> workspace_;
  std::vector<std::size_t> lengths_;  // of all ranks' blocks, as each says its own
  NetworkBlocks blocks_;
  LibraryWindow window_;                // of streamed sums, and of sums of 16-bit numbers
  std::uint64_t signature_ = 0;         // of the call that runs
  std::atomic<std::uint32_t> call_{0};  // its number; asyncError() reads it from any thread
  std::string lastAlgorithm_;
  mutable std::mutex causeMutex_;
  mutable std::optional<Error> cause_;  // the first failure
  mutable std::atomic<taccResult_t> asyncError_{taccSuccess};
};

}  // namespace tacc
