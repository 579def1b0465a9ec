// The communicator of ranks on several hosts: shared memory inside each host, messages between hosts.
//
// A call is one plan over all ranks. Its messages between ranks of one host go through the memory that these share, the
// others over the network. The communicator joins the ranks, chooses each call's plan and tells failures; the engine
// runs the plan (engine/net/chunked_run.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/cluster/network_endpoint.hpp"
#include "comm/cluster/online_tuner.hpp"
#include "comm/control/control_plane.hpp"
#include "comm/hosts.hpp"
#include "comm/joined_communicator.hpp"
#include "comm/node/node_communicator.hpp"
#include "engine/converted_call.hpp"
#include "engine/net/chunked_run.hpp"
#include "engine/net/network_call.hpp"
#include "engine/net/pair_run.hpp"
#include "engine/net/unequal_run.hpp"
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

  void exchangeNow(std::span<const PointToPoint> operations) override;
  std::unique_ptr<Communicator> split(int color, int key, const CommConfig& config) override;
  std::unique_ptr<Communicator> makeGroup(std::span<const int> members, const CommConfig& config) override;
  void abort(const std::string& why) noexcept override;
  void failWith(const Error& error) noexcept override;
  taccResult_t asyncError() const noexcept override;
  void registerBuffer(void* buffer, std::size_t bytes) override;
  void deregisterBuffer(void* buffer) override;
  BucketSizes bucketSizes(std::size_t stepBytes) override;
  std::string explain(Collective collective, std::size_t bytes) override;
  std::vector<CallRoute> routes(Collective collective, std::size_t bytes) override;
  bool serves(const Algorithm& algorithm, Collective collective, const PlanDemands& demands) override;
  std::string lastAlgorithm() const override { return lastAlgorithm_; }
  std::shared_ptr<const Topology> topology() const override { return topology_; }
  std::string transportName() const override { return transportName_; }
  Standing standing() const override;

 private:
  /// Messages to ranks of this host go through its shared memory.
  std::unique_ptr<NetworkTransport> withLocalMessages(std::unique_ptr<NetworkTransport> network) const;
  /// The board that the ranks of this host share.
  PriceBoard priceBoard();
  void runSigned(const Call& call, std::uint64_t signature) override;
  void runCall(const Call& call);
  /// Chooses how the call runs (cluster_calls.cpp).
  void runParts(const Call& call);
  /// Runs the plan that is chosen for it.
  void runChosen(const Call& call);
  void barrier();
  /// Replaces the times of the last calls by those that all ranks agree on.
  void agreeOnTimes();
  /// Whether the results of an allreduce of this number of 16-bit elements travel as 16 bits, in a separate part.
  bool gathersHalfWidth(std::size_t numbers);
  void allReduceHalfWidth(const Call& call);
  /// Blocks of unequal lengths.
  void runUnequal(const Call& call);
  /// Gather, scatter and alltoall, where a rank knows the lengths of none but its own blocks.
  void runUnequalOfPairs(const Call& call);

  /// Whether times correct the choice: a forced algorithm stays, and a reproducible communicator does not adapt.
  bool isDynamic() const noexcept { return config().dynamic && !config().isReproducible && !forces(); }
  /// The algorithm of a call's collective. `root` as the plans number it, `bytes` as in NetworkSelector::choose(): what
  /// travels, where the call's own bytes are what a tuning file knows it by.
  const Algorithm& algorithmFor(const Call& call, int root, std::size_t bytes, const PlanDemands& demands = {});
  /// The call as the engine runs it by this algorithm, from now on the last one. `bytes`: as in
  /// NetworkSelector::messageBytes().
  NetworkCall planned(const Call& call, const Algorithm& algorithm, std::size_t bytes,
                      PlanOrder order = PlanOrder::hosts, int root = 0);
  /// By rank, its number on this host; -1: it is on another.
  std::vector<int> onThisHost() const;
  /// Sends and receives with ranks of this host; empty where this rank is alone there.
  PairRun::InsideHost insideHost();
  /// The place of rank 0 in the order of the hosts, from which calls are explained.
  int placeOfRank0() const noexcept { return run_.ranks().numberOf(0, PlanOrder::hosts); }
  std::string describeCurrent() const;
  /// Tells all ranks of the exception that is being handled, and throws it as an Error.
  [[noreturn]] void reportFailure();
  /// Sets the asynchronous error and tells all ranks; the first time only.
  void tell(const Error& error) const noexcept;
  /// The first of all is what every later call ends with.
  void noteFailure(const Error& error) const noexcept;
  std::optional<Error> cause() const;
  [[noreturn]] void failAgain() const;
  bool isOnThisHost(const Group& group) const;
  std::unique_ptr<Communicator> makeInside(const Group& group, const CommConfig& config);
  std::unique_ptr<Communicator> joinGroup(Group group, const taccUniqueId& id, const CommConfig& config);

  std::vector<RankIdentity> who_;
  HostMap hosts_;
  int host_;
  int local_;
  std::unique_ptr<NodeCommunicator> node_;
  std::unique_ptr<ControlPlane> control_;
  NetworkEndpoint endpoint_;
  PairRun pairs_;
  std::string transportName_, transportSettings_;
  NetworkSpeed speed_;
  std::shared_ptr<const Topology> topology_;
  NetworkSelector selector_;
  OnlineTuner tuner_;  // may replace what it chooses
  ChunkedRun run_;
  UnequalRun unequal_;
  ConversionMemory converted_;          // of calls whose inputs are changed first
  LibraryWindow window_;                // of streamed sums, and of sums of 16-bit numbers
  std::uint64_t signature_ = 0;         // of the call that runs
  std::atomic<std::uint32_t> call_{0};  // its number; asyncError() reads it from any thread
  std::string lastAlgorithm_;
  mutable std::mutex causeMutex_;
  mutable std::optional<Error> cause_;  // the first failure
  mutable std::atomic<taccResult_t> asyncError_{taccSuccess};
};

}  // namespace tacc
