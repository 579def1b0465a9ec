// The communicator of ranks that share a node, as processes or as threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/joined_communicator.hpp"
#include "comm/membership.hpp"
#include "core/environment.hpp"
#include "engine/converted_call.hpp"
#include "engine/point_to_point.hpp"
#include "engine/shm/buffer_exchange.hpp"
#include "engine/shm/call_exchange.hpp"
#include "engine/shm/direct_run.hpp"
#include "engine/shm/node_run.hpp"
#include "engine/shm/unequal_node_run.hpp"
#include "selection/node_selector.hpp"
#include "selection/selection.hpp"
#include "transports/shm/library_window.hpp"
#include "transports/shm/local_messages.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

class NodeCommunicator final : public JoinedCommunicator {
 public:
  NodeCommunicator(Membership membership, int rank, int ranks, CommConfig config, Environment environment);
  ~NodeCommunicator() override;

  void repeat(Collective collective, const void* send, void* receive) override;
  void exchangeNow(std::span<const PointToPoint> operations) override;
  bool updateNow(const DirectUpdate& update) override;
  std::unique_ptr<Communicator> split(int color, int key, const CommConfig& config) override;
  std::unique_ptr<Communicator> makeGroup(std::span<const int> members, const CommConfig& config) override;
  void abort(const std::string& why) noexcept override;
  void failWith(const Error& error) noexcept override;
  taccResult_t asyncError() const noexcept override;
  void registerBuffer(void* buffer, std::size_t bytes) override;
  void deregisterBuffer(void* buffer) override;
  std::string explain(Collective collective, std::size_t bytes) override;
  std::vector<CallRoute> routes(Collective collective, std::size_t bytes) override;
  bool serves(const Algorithm& algorithm, Collective collective, const PlanDemands& demands) override;
  std::string lastAlgorithm() const override { return std::string(lastAlgorithm_); }
  Standing standing() const override;

  // For a communicator of which this node is a part:
  /// Work to do while this rank waits for another one of the node; see Waiter.
  void setIdleWork(std::function<void()> work) { waiter_.setIdleWork(std::move(work)); }
  /// What carries messages between its ranks; must be gone before this communicator is.
  std::unique_ptr<LocalMessages> makeMessages() const;
  /// Memory that its ranks share for what saves them work.
  std::span<std::byte> board() const noexcept { return membership_.segment.board(); }
  /// Shows the other ranks that this one is in a call of that signature. Waits only where it is `callSlots` calls ahead
  /// of another. Throws taccInvalidUsage where it sees that earlier calls differed.
  void announce(std::uint64_t signature);
  /// Compares what was announced last with what the others have announced so far, without waiting: for ranks that wait.
  /// Throws taccInvalidUsage with both calls.
  void compareAnnounced() const { exchange_.compareSeen(); }
  /// Ends every wait of the node's ranks with this error.
  void post(const Error& error) noexcept { waiter_.post(error.result(), error.what()); }
  /// Throws when the communicator has failed.
  void checkErrors() const { waiter_.checkErrors(); }

 private:
  void runSigned(const Call& call, std::uint64_t signature) override;
  void runCall(const Call& call, std::uint64_t signature);
  void runPlan(const Call& call, const CallShape& shape, std::uint64_t signature);
  /// Blocks of unequal lengths.
  void runUnequal(const Call& call, std::uint64_t signature);
  CallShape shapeOf(const Call& call);
  CallShape shapeOf(Collective collective, int root, std::size_t bytes, std::string_view route) const;
  /// `isOrdered`: sums must be in the order of the ranks. The request is the shape's, or kept by the selector.
  NodePlan choosePlan(const CallShape& shape, const LoweringFacts& facts, bool isOrdered);
  NodeQuestion questionOf(const CallShape& shape, std::size_t posted) const;
  /// Whether where ranks stand decides how it runs: neither where all stand alike, nor of prefixes, which are in the
  /// order of the ranks.
  bool isPriced(Collective collective) const noexcept;
  /// Whether a call that posts `posted` bytes goes the eager route. `isSteered`: its route is not chosen here.
  bool goesEager(const CallShape& shape, std::size_t posted, bool isSteered);
  ScheduleLimits limitsOf(const CallShape& shape) const;
  /// Tells all ranks of the exception that is being handled, and throws it as an Error.
  [[noreturn]] void reportFailure();

  // A part of it, in node_split.cpp and node_part.cpp:
  struct PartWish;
  /// What all ranks of the part bring along, beside their number.
  struct PartTerms {
    Group group;
    std::vector<cpu_set_t> cores;  // by rank of the part
    Key secret;                    // known to them alone
  };
  PartWish wishFor(int color, int key, const std::optional<Environment>& environment, const CommConfig& part) const;
  /// Whether all parts can be made of what this communicator has; equal on all ranks.
  bool canShare(const std::vector<PartWish>& wishes) const;
  struct Handout;
  static Handout* handOut(int ranks, const CommConfig& part);
  std::unique_ptr<Communicator> splitThreads(const Group& group, int color, const CommConfig& part);
  std::unique_ptr<Communicator> makeThreadGroup(const Group& group, const CommConfig& part);
  /// What a call that makes a part has to do with it.
  struct Making {
    Membership share;
    std::shared_ptr<Presence> presence;
    std::unique_ptr<NodeCommunicator> made;
    std::optional<Error> problem;  // told once nobody waits for this rank any more
    std::optional<MakesPart> says;
  };
  /// Makes the part of this rank of what this communicator has. `making` outlives a failure until that is told: a rank
  /// that left its part before would be missed there without a reason. A part that waits for a rank looks after this
  /// communicator, where that one's trouble is told, and calls the ranks as this one does, until endMaking().
  void makePart(const PartTerms& terms, const Environment& environment, const CommConfig& part, Making& making);
  static void endMaking(Making& making);
  /// Fills `part` with what this communicator has for one, whose ranks then see each other.
  void shareWithPart(const PartTerms& terms, const Environment& environment, Membership& part);
  /// Collective: the tuning file that rank 0 has, for a part. What is wrong with it is an Error on all, told once
  /// nobody waits for this rank any more.
  std::optional<Error> adoptTuning(const Environment& environment);
  /// Collective of the library's own: what rank 0 gives.
  std::string hearRankZero(const std::string& text);
  /// Afterwards no peer writes into the buffers of the call that failed with `error`. Throws `error` with what could
  /// not be kept from them added to its message.
  void fenceMemory(const Error& error);
  int nameOfRank(int rank) const noexcept override { return waiter_.nameOf(rank); }
  std::string describeCurrent() const;

  Membership membership_;
  Environment environment_;
  Waiter waiter_;
  CallExchange exchange_;
  BufferExchange buffers_;
  NodeRun run_;
  UnequalNodeRun unequal_;
  PointToPointEngine pairs_;
  DirectRun direct_;
  NodeSelector selector_;
  /// As the call that was noted last of a collective ran (ShortCalls).
  struct ReadyCall {
    EagerCall eager;
    std::uint64_t signature;
  };
  std::array<ReadyCall, collectiveCount + 1> readyCalls_{};
  std::vector<int> placeOf_;        // by rank
  ConversionMemory converted_;      // of calls whose inputs are changed first
  LibraryWindow window_;            // of streamed sums
  std::vector<void*> adopted_;      // registered private buffers, turned into library memory
  std::string_view lastAlgorithm_;  // a name in the registry, or "eager"
};

}  // namespace tacc
