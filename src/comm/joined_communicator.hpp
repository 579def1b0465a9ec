// What communicators of nodes and of clusters have in common: the record of their operations, how their choice is
// steered, and that their ranks joined one by one, so that they can do so again when some are lost.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/plan_demands.hpp"
#include "comm/call_signature.hpp"
#include "comm/communicator.hpp"
#include "comm/control/flight_recorder.hpp"
#include "comm/recovery/survivor_rendezvous.hpp"
#include "core/error.hpp"
#include "core/types.hpp"
#include "engine/direct_update.hpp"
#include "selection/tuning/tuning.hpp"

namespace tacc {

/// What can run a call.
struct CallRoute {
  std::string name;               // of an algorithm, or a *Route of selection/tuning/tuning.hpp
  std::optional<double> seconds;  // as the cost model says
};

class JoinedCommunicator : public Communicator {
 public:
  void run(const Call& call) final {
    const std::uint64_t signature = signatureOf(call);
    record(signature, [&] { runSigned(call, signature); });
  }
  bool updateDirectly(const DirectUpdate& update) final {
    bool done = false;
    record(signatureOf(update), [&] { done = updateNow(update); });
    return done;
  }
  void exchange(std::span<const PointToPoint> operations) final {
    record(0, [&] { exchangeNow(operations); });
  }
  /// The same without a record: for calls of the library's own.
  void runNow(const Call& call) { runSigned(call, signatureOf(call)); }
  virtual void exchangeNow(std::span<const PointToPoint> operations) = 0;
  virtual bool updateNow(const DirectUpdate& update) {
    (void)update;
    return false;
  }

  std::unique_ptr<Communicator> shrink(std::span<const int> excluded, const CommConfig& config) final;
  Agreed agree(std::uint32_t flags) final;
  void endRecovery() noexcept final;
  /// Null among threads, and for a single rank.
  void setRendezvous(std::unique_ptr<SurvivorRendezvous> rendezvous) noexcept { rendezvous_ = std::move(rendezvous); }

  /// Calls from the next one on take this route; "": chosen again. All ranks alike, between two calls. A route that
  /// cannot serve a call makes it fail.
  void force(std::string name) {
    forced_ = std::move(name);
    isWish_ = false;
    forgetShortCalls();
  }
  /// All routes of a call of `bytes`, first the one that is chosen; equal on all ranks. Local.
  virtual std::vector<CallRoute> routes(Collective collective, std::size_t bytes) = 0;
  /// Where what is measured here holds.
  const TuningPlace& place() const noexcept { return place_; }
  /// `tuning`: null: none.
  void setTuning(TuningPlace place, std::shared_ptr<const Tuning> tuning) {
    place_ = std::move(place);
    tuning_ = std::move(tuning);
    forgetShortCalls();
  }

 protected:
  /// `signature`: that of `call`.
  virtual void runSigned(const Call& call, std::uint64_t signature) = 0;
  /// Runs `operation` and has it in the record by `signature`, as begin() of FlightRecorder.
  template <class Operation>
  void record(std::uint64_t signature, const Operation& operation) {
    recorder_.begin(signature);
    try {
      operation();
    } catch (const Error& error) {
      recorder_.fail(error.result(), error.what());
      throw;
    }
    recorder_.end();
  }

  /// `trace`: TACC_TRACE.
  JoinedCommunicator(int rank, int ranks, CommConfig config, std::string trace)
      : Communicator(rank, ranks, std::move(config)),
        forced_(this->config().algorithm),
        isWish_(this->config().isAlgorithmWish && !forced_.empty()),
        recorder_(rank, std::move(trace)) {}

  bool forces() const noexcept { return !forced_.empty(); }
  /// The route that such calls of the program have to take; empty: it is chosen. One that TACC_ALGO names is for those
  /// that it serves: the variable is said of a whole program, with all its calls. Equal on all ranks.
  std::string_view forced(Collective collective, const PlanDemands& demands = {}) {
    return isWish_ ? wished(collective, demands) : std::string_view(forced_);
  }
  /// Whether the algorithm has a plan here that meets the demands.
  virtual bool serves(const Algorithm& algorithm, Collective collective, const PlanDemands& demands) = 0;
  /// What the tuning file says, unless a route is forced or reductions must be reproducible; null: nothing.
  const TunedSize* tuned(Collective collective, std::size_t bytes) {
    if (!tuning_ || !forced(collective).empty() || (config().isReproducible && isReduction(collective))) return nullptr;
    return tuning_->find(collective, bytes);
  }
  /// The route that a call of the program of `bytes` has to take; empty: it is chosen.
  std::string_view steered(Collective collective, std::size_t bytes) {
    const TunedSize* measured = tuned(collective, bytes);
    return measured != nullptr ? std::string_view(measured->algorithm) : forced(collective);
  }
  /// The same for this call.
  std::string_view steered(const Call& call) {
    if (call.isInternal) return {};
    if (isWish_) [[unlikely]]
      return steeredByWish(call);
    return steered(call.collective, call.count * sizeOf(call.type));
  }
  /// The line of an explanation that says so.
  std::string describeTuned(const TunedSize& measured) const;

  /// A collective of the library's own: every rank gives a value, gets all.
  template <class T>
  std::vector<T> gatherValues(const T& mine) {
    std::vector<T> all(static_cast<std::size_t>(ranks()));
    runNow({.collective = Collective::allGather,
            .send = &mine,
            .receive = all.data(),
            .count = sizeof(T),
            .type = taccUint8,
            .isInternal = true});
    return all;
  }

  /// Whom this rank is with in a part.
  struct Group {
    int rank;  // this one's new number
    int ranks;
    int leader;                // the old number of the new rank 0
    std::vector<int> members;  // the old numbers of all
  };
  /// What a rank asks of a split.
  struct SplitWish {
    int color, key, rank;
  };
  /// Collective; ranks without a color form a group that nobody makes a communicator for.
  Group gatherGroup(int color, int key);
  /// That of this rank, from what all have asked, by rank.
  Group groupIn(std::vector<SplitWish> wishes) const;
  /// That of `members`, of whom this rank is one.
  Group groupOf(std::span<const int> members) const;
  /// Of the library's own, by messages that only the group's ranks take part in: every one gives a value, gets all, by
  /// new rank. Throws taccInvalidUsage where they do not mean the same group.
  template <class T>
  std::vector<T> gatherAmong(const Group& group, const T& mine) {
    std::vector<T> all(static_cast<std::size_t>(group.ranks));
    exchangeAmong(group, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }

  /// Joins a part of this communicator, looking after the whole meanwhile (`watch`). A rank that has not what it needs
  /// to join fails the whole: the others of the part would wait for it, and know of it nothing but that.
  std::unique_ptr<Communicator> joinPart(const taccUniqueId& id, int ranks, int rank, const CommConfig& config,
                                         const std::function<void()>& watch);

  /// Of a rank, for messages: its number where this communicator is a part of one that the program has.
  virtual int nameOfRank(int rank) const noexcept { return rank; }
  /// While it lives, messages say that this communicator is making a part of these ranks.
  class MakesPart {
   public:
    MakesPart(JoinedCommunicator& whole, std::string making) noexcept : whole_(whole) {
      whole_.making_ = std::move(making);
    }
    ~MakesPart() { whole_.making_.clear(); }
    MakesPart(const MakesPart&) = delete;
    MakesPart& operator=(const MakesPart&) = delete;

   private:
    JoinedCommunicator& whole_;
  };
  /// What MakesPart says of `group`.
  std::string describeMaking(const Group& group) const {
    return "the making of a communicator of the ranks " + namesOf(group);
  }
  /// "the making of a communicator of the ranks 2 3"; empty: none is being made.
  const std::string& making() const noexcept { return making_; }

  /// For the record: what changes in calls from now on.
  void note(std::string text) { recorder_.note(std::move(text)); }

 private:
  void exchangeAmong(const Group& group, std::span<const std::byte> mine, std::span<std::byte> all);
  /// Of a wish. Cost: the first time that of meets().
  std::string_view wished(Collective collective, const PlanDemands& demands);
  std::string_view steeredByWish(const Call& call);

  std::string namesOf(const Group& group) const;

  std::string making_;
  std::string forced_;                                         // empty: chosen
  bool isWish_;                                                // TACC_ALGO says it
  std::map<std::pair<Collective, PlanDemands>, bool> served_;  // whether a wish can be granted
  TuningPlace place_;
  std::shared_ptr<const Tuning> tuning_;
  FlightRecorder recorder_;
  std::unique_ptr<SurvivorRendezvous> rendezvous_;
  std::stop_source recoveryStop_;
};

}  // namespace tacc
