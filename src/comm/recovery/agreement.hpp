// The ranks of a communicator agree on one decision, also after any of them has died, stopped or been cut off.
//
// Every rank listens at its door (door.hpp). Who agrees calls on the ranks below its own, lowest first, and follows the
// one that leads; when none of them answers it leads itself, and a leader that hears of a lower one follows that. The
// leader waits until every rank of the base has come, is known to have ended (nobody listens at its door), or cannot be
// reached for a while; then it has its proposal accepted (consensus.hpp), tells everybody, and goes when all know.
//
//      follower        visit  ->        <- leader         calls on, and learns who leads
//                             <- prepare       promise ->
//                             <- accept       accepted ->
//                             <- decision        known ->
//                             <- done                     both may go
//
// Whatever is lost costs time only. A follower whose leader has gone looks for the next one, and brings along what it
// has promised, accepted or learnt. A rank that is stopped still listens: it is waited for until shortly before the
// first of those that wait runs out of time, and left out if the others are a quorum without it.
//
// A star, also where ranks joined in a tree: the tree died with the communicator, and nobody knows which of its
// gateways live.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/meeting_link.hpp"
#include "comm/bootstrap/wait.hpp"
#include "comm/recovery/consensus.hpp"
#include "comm/recovery/door.hpp"
#include "core/error.hpp"

namespace tacc {

/// What one rank asks of an agreement. All ranks ask the same but for the flags and the time.
struct AgreementRequest {
  AgreementPurpose purpose = AgreementPurpose::flags;
  std::uint32_t flags = ~0U;   // joined with those of the others by a bitwise and
  std::vector<bool> excluded;  // by rank: who takes no part, even if it lives
  double seconds = 0;          // for which this rank waits
};

/// What a rank remembers from one agreement of a communicator to the next.
struct AgreementMemory {
  struct Past {
    AgreementPurpose purpose;
    Decision decision;
  };
  std::uint32_t instance = 0;             // of the next one
  std::map<std::uint32_t, Past> decided;  // for those that come late
  std::vector<bool> dead;                 // for certain
  bool isWanted = false;                  // others may still need to see that this rank lives
};

/// Called before a note is sent and after one has come: "send prepare", "got visit". For tests of faults.
using MeetingObserver = std::function<void(std::string_view what)>;

class Agreement {
 public:
  /// All references must outlive it.
  Agreement(const MeetingMembers& members, Door& door, const Interrupt& interrupt, AgreementMemory& memory,
            AgreementRequest request, const MeetingObserver& observer);
  ~Agreement() { door_.stopReceiving(); }
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  /// To the end. Throws taccTimeout with who did not come, taccInvalidUsage where ranks ask for different things,
  /// taccRemoteError when interrupted. Whatever it throws, others may have decided; but never on two decisions.
  Decision run();

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  enum class Role : std::uint8_t { searching, following, leading };
  enum class Phase : std::uint8_t { collecting, preparing, accepting, informing };  // of a leader
  struct Follower {
    MeetingLink* link;
    std::uint32_t flags;
    Time deadline;
  };
  /// What is known of a rank that neither follows nor has ended.
  struct Absence {
    std::optional<Time> unreachableSince;
    Time nextCall{};  // not before
  };

  // agreement.cpp: the loop, and what every rank does
  void turn();
  void listen(double seconds);
  std::vector<MeetingLink*> links() const;
  void drain(MeetingLink& link);
  /// Throws where the others decided this agreement, or a later one, without this rank.
  void hearOfPassed(std::optional<std::uint32_t> instance) const;
  void handle(MeetingLink& from, const MeetingNote& note);
  void handleOther(MeetingLink& from, const MeetingNote& note);
  void receiveVisit(MeetingLink& from, const MeetingNote& note);
  void learn(const Decision& value);
  void send(MeetingLink& to, const MeetingNote& note);
  MeetingNote noteOf(MeetingWord word) const;
  void checkRequest(MeetingLink& from, const MeetingNote& note);
  [[noreturn]] void failForAll(const Error& error);
  [[noreturn]] void failForTime();
  bool isInBallot() const noexcept;

  // agreement_search.cpp: whom to follow
  void forgetFollower(const MeetingLink* link);
  void call(int rank);
  void tendCalls();
  void sendVisit(MeetingLink& to);
  void lookFurther();
  bool isPassed(int rank) const;
  void beginSearch();
  void hearOfLeader(MeetingLink& from, int rank);
  void follow(int rank);
  void goTo(int rank);
  void announceLeader(int rank);
  void obey(MeetingLink& from, const MeetingNote& note);
  void tendLeader();

  // agreement_lead.cpp
  void beginToLead();
  void lead();
  void collect();
  void callMissing();
  void callLeftBehind();
  bool isWordOnTheWay() const;
  bool isSettled(int rank) const;
  double keptSeconds() const noexcept;
  bool isTimeShort() const;
  std::vector<bool> present() const;
  void startBallot();
  void receivePromise(int rank, const MeetingNote& note);
  void countPromises();
  void receiveOutbid(const MeetingNote& note);
  void giveUpBallot();
  void inform();
  void keepAlive();
  std::string describeMissing() const;

  static double secondsSince(Time then) noexcept { return std::chrono::duration<double>(Clock::now() - then).count(); }
  static Time after(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  /// Where many ranks come to one, each waits longer for its answer.
  double patient(double seconds) const noexcept { return seconds + 0.001 * ranks(); }
  bool isBase(int rank) const noexcept { return quorum_.isIn(static_cast<std::size_t>(rank)); }
  bool isDead(int rank) const noexcept { return memory_.dead[static_cast<std::size_t>(rank)]; }
  int ranks() const noexcept { return static_cast<int>(members_.places.size()); }

  const MeetingMembers& members_;
  Door& door_;
  const Interrupt& interrupt_;
  AgreementMemory& memory_;
  AgreementRequest request_;
  const MeetingObserver& observer_;
  int rank_;
  Quorum quorum_;
  std::uint64_t digest_;
  Acceptor acceptor_;
  Time deadline_;
  bool isFinished_ = false;

  std::list<std::unique_ptr<MeetingLink>> visitors_;   // who came, and has proven it
  std::map<int, std::unique_ptr<MeetingLink>> calls_;  // whom this rank called on, by rank
  std::vector<bool> hasVisited_;                       // by rank: the call is open, and the visit sent
  std::map<int, Absence> absences_;
  std::map<int, Follower> followers_;  // by rank; their links are open

  Role role_ = Role::searching;
  std::vector<int> below_;            // ranks of the base below this one
  std::size_t first_ = 0, last_ = 0;  // of those that are called on now
  std::size_t width_ = 1;             // how many at a time
  int target_ = -1;                   // somebody said that it leads
  int leader_ = -1;                   // whom this rank follows
  std::optional<Time> helpUntil_;     // the decision is known, and others may not have heard of it
  std::optional<Time> decidedSince_;  // of a follower

  Phase phase_ = Phase::collecting;
  Time phaseSince_{}, leadingSince_{}, lastAlive_{};
  std::optional<Proposal> proposal_;
  std::uint32_t highestRound_ = 0;  // that anybody has told of
  std::vector<bool> asked_, knows_;
  bool areLeftBehindCalled_ = false;
  int idBringer_ = -1;
  taccUniqueId id_{};
};

}  // namespace tacc
