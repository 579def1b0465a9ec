// The communicator of ranks on several hosts: shared memory inside each host, messages between hosts.
//
// A call is one plan over all ranks. Its messages between ranks of one host go through the memory that these share, the
// others over the network; long calls are cut into chunks, several of which are under way together. Alltoall, gather
// and scatter go straight between all pairs. What is made or rounded on the way (streamed sums, sums of 16-bit numbers)
// is put together from calls of the host's own communicator and plans between hosts.
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

#include "comm/cluster/network_endpoint.hpp"
#include "comm/cluster/online_tuner.hpp"
#include "comm/control/control_plane.hpp"
#include "comm/hosts.hpp"
#include "comm/joined_communicator.hpp"
#include "comm/node/library_window.hpp"
#include "comm/node/node_communicator.hpp"
#include "engine/net/network_pairs.hpp"
#include "engine/net/network_run.hpp"
#include "selection/network_chooser.hpp"

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
  std::vector<CallRoute> ways(Collective collective, std::size_t bytes) override;
  std::string lastAlgorithm() const override { return lastAlgorithm_; }
  std::shared_ptr<const Topology> topology() const override { return topology_; }
  std::string transportName() const override { return transportName_; }
  Standing standing() const override;

 private:
  static constexpr std::size_t chunksUnderWay = 4;  // of a long call

  /// The part of a call that is between hosts.
  struct Between {
    Collective collective;
    const std::vector<int>& members;  // ranks that take part; this one is among them
    int root;                         // among the members
    bool inPlace;
    std::size_t count;  // split: elements; stack: elements of a block
    std::vector<NetworkChunk> chunks;
    bool isSorted = false;     // of a stack: its blocks are in the order of the members, not of the ranks
    std::size_t distance = 0;  // of a stack: elements from a block of a chunk's buffers to the next; 0: count
    const Algorithm* algorithm = nullptr;   // null: chosen here
    const NetworkBlocks* blocks = nullptr;  // of unequal lengths; null: all have `count` elements
  };
  /// A call that goes in and out of the hosts chunk by chunk.
  struct Pipeline {
    std::size_t chunks;
    bool inNetwork;                           // this rank takes part between hosts
    std::function<void(std::size_t)> inward;  // inside the host, before a chunk goes out; may be empty
    std::function<void(std::size_t)> outward;
  };

  /// Messages to ranks of this host go through its shared memory.
  std::unique_ptr<NetworkTransport> withLocalMessages(std::unique_ptr<NetworkTransport> network) const;
  void runCall(const Call& call);
  void runParts(const Call& call);
  void runCollective(const Call& call);
  /// The messages of a plan tell which call they belong to. What ranks of a host exchange otherwise does not, so calls
  /// that do so begin when all of them have come with the same.
  void meetInNode() {
    if (node_) node_->meet();
  }
  /// Replaces the times of the last calls by those that all ranks agree on.
  void agreeOnTimes();
  /// Whether an allreduce of 16-bit numbers gathers its results as 16 bits: a reduce-scatter and an allgather.
  bool gathersHalfWidth(const Call& call);
  void allReduceHalfWidth(const Call& call);
  void allReducePartHalfWidth(const Call& call);
  /// Numbers are made, and sums taken, while the chunks before and after are between hosts.
  void allReduceStreamed(const Call& call);
  /// By messages between all pairs that have data for each other: alltoall, gather, scatter.
  void runDirect(const Call& call);
  /// One plan over all ranks: what goes between ranks of a host goes through its memory, the rest are messages.
  void runPlan(const Call& call);
  void runPrefix(const Call& call, const UserBuffers& mine);
  /// The one for a prefix that must combine in the order of the ranks: `chosen` if it does, else of those that do the
  /// fastest by its price.
  const Algorithm& prefixInRankOrder(const Algorithm& chosen, const PlanRequest& request, std::size_t bytes);
  /// Allgather and reduce-scatter of short blocks in an order in which neighbours travel as one message.
  void runSorted(const Call& call);
  void barrier();
  /// Blocks of unequal lengths (cluster_unequal.cpp).
  void runUnequal(const Call& call);
  /// Throws where what this rank counts for a rank, `all`, is not what that counts for itself.
  void compareLengths(Collective collective, const BlockRow& all, std::size_t own);
  void planUnequal(const Call& call, const BlockRow& all);
  /// `bytes`: of a block, on average.
  const Algorithm& algorithmForBlocks(const Call& call, const std::vector<int>& members, std::size_t bytes,
                                      bool inRankOrder);
  void directUnequal(const Call& call);
  /// Reductions whose bits depend on the contributions and the number of ranks alone (cluster_rank_order.cpp).
  void reduceInRankOrder(const Call& call);
  /// The same of a streamed sum, whose numbers are all made first.
  void reduceStreamedInRankOrder(const Call& call);
  void checkRankOrder(const Call& call);

  /// A forced algorithm stays, a reproducible communicator does not adapt, and calls of the library's own are not
  /// looked at.
  bool isDynamic() const noexcept {
    return config().dynamic && !config().isReproducible && forced().empty() && !internal_;
  }
  const Algorithm& algorithmFor(Collective collective, const std::vector<int>& members, int root, std::size_t bytes);
  /// Elements of a chunk of one lane.
  std::size_t chunkOf(Collective collective, const std::vector<int>& members, const Call& call, std::size_t lanes);
  void startBetween(const Call& call, Between between, std::size_t released);
  void finishBetween();
  void runPipeline(const Pipeline& pipeline);
  void runInNode(Call call);
  void exchangeAll(std::span<const PointToPoint> operations, std::uint64_t signature, std::uint32_t number);
  /// What `member` of the chooser's ranks runs; made at first use.
  const NetworkProgram& programFor(const Algorithm& algorithm, const NetworkChooser& chooser, Collective collective,
                                   int root, int member, bool inPlace);
  /// Whether it goes straight between all pairs, unless something else is forced.
  bool goesDirect(Collective collective) const noexcept;
  bool goesInLanes(std::size_t bytes) const noexcept;
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
  std::vector<int> everybody_, leaders_, lane_;  // in the order of the hosts
  std::vector<int> inOrder_;                     // all ranks, as they are numbered
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
  NetworkChooser betweenHosts_, betweenAll_;  // one rank a host, or all ranks
  NetworkChooser& chooserFor(const std::vector<int>& members) noexcept;
  /// Of rank 0 in the order of the hosts: calls are explained as from there.
  int placeOfRank0() const;
  int lanesOf(const std::vector<int>& members) const noexcept;
  OnlineTuner tuner_;  // may replace what these choose
  std::map<std::tuple<const Algorithm*, int, int, int, int, bool>, NetworkProgram> programs_;
  std::map<std::pair<const Algorithm*, Collective>, bool> prefixesInOrder_;  // as far as that was asked for
  std::vector<std::byte> workspace_;
  std::vector<std::size_t> lengths_;  // of all ranks' blocks, as each says its own
  NetworkBlocks blocks_;
  LibraryWindow window_;                // of streamed sums, and of sums of 16-bit numbers
  std::uint64_t signature_ = 0;         // of the call that runs
  std::size_t callBytes_ = 0;           // of its elements: the size that a tuning file knows it by
  std::atomic<std::uint32_t> call_{0};  // its number; asyncError() reads it from any thread
  bool exchangingPairs_ = false;
  std::string lastAlgorithm_;
  mutable std::mutex causeMutex_;
  mutable std::optional<Error> cause_;  // the first failure
  mutable std::atomic<taccResult_t> asyncError_{taccSuccess};
};

}  // namespace tacc
