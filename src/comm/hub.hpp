// Rank 0's end of the bootstrap star: admits the other ranks, gathers from them and scatters to them.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "comm/channel.hpp"
#include "comm/handshake.hpp"
#include "comm/listeners.hpp"
#include "comm/wait.hpp"

namespace tacc {

/// What rank 0 tells one rank in a scatter.
struct Answer {
  Payload payload;
  std::vector<int> descriptors;  // stay open until scatter() returns
};

class Hub {
 public:
  /// Admits all other ranks. An Error is told to all that have joined, and for a moment to those that still come.
  Hub(std::vector<Listener> listeners, const UniqueIdContents& id, int ranks, double timeoutSeconds,
      const Interrupt& interrupt);

  /// Runs one collective; an Error in it is told to all ranks and ends the star.
  template <class Work>
  auto collective(const Work& work) {
    try {
      return work();
    } catch (const Error& error) {
      tellFailure(error);
      throw;
    }
  }

  /// One message of `kind` from every other rank, by rank (that of rank 0 is empty). Inside collective() only.
  std::vector<Message> gather(MessageKind kind, std::string_view operation, double timeoutSeconds);
  /// Sends every other rank its answer; `answerTo(rank)` is asked once for each. Inside collective() only.
  void scatter(MessageKind kind, std::string_view operation, double timeoutSeconds,
               const std::function<Answer(int rank)>& answerTo);

  /// Listens for `seconds`: throws the failure that a rank tells or suffers meanwhile. Inside collective() only.
  void listen(double seconds);

  /// Called again and again while rank 0 waits, if it is set.
  std::function<void()> idleWork;

  /// Every other rank is connected over a unix socket.
  bool allUnix() const noexcept;
  /// The connections by rank (that of rank 0 is closed); afterwards only the destructor may be called.
  std::vector<Channel> release();

 private:
  struct Newcomer {
    Channel channel;
    bool overTcp;
    std::string from;
    Challenge challenge;
    Deadline deadline;
  };
  struct Member {
    Channel channel;
    bool overTcp;
    Introduction who;
    std::optional<Message> part;  // of the gather that goes on
  };
  enum class Phase {
    joining,
    gathering,
    scattering,
    lingering  // joining has failed; those who still come are told why
  };

  void admitAll(const UniqueIdContents& id, double timeoutSeconds);
  void linger(const Error& error);
  void serve(const Deadline& deadline, Phase phase, MessageKind kind);
  void acceptNewcomers(const Listener& listener);
  void noteRefusal(const Newcomer& newcomer, std::string_view why);
  std::string describeRefusals() const;
  bool serveNewcomer(Newcomer& newcomer);
  void admit(Newcomer& newcomer, const Hello& hello);
  void checkFits(const Introduction& who, bool overTcp) const;
  void serveMember(int rank, short events, Phase phase, MessageKind kind);
  [[noreturn]] void failMemberEnded(int rank);
  [[noreturn]] void failLost(int rank, std::string_view when);
  void tellFailure(const Error& error) noexcept;

  int ranks() const noexcept { return static_cast<int>(members_.size()); }
  std::string describe(int rank) const;
  template <class Missing>
  std::string describeAll(const Missing& missing) const;

  const Interrupt* interrupt_;
  std::vector<Listener> listeners_;
  Introduction self_;
  Secret secret_;
  int proven_ = 0;                 // connections that proved to be of the job, also those refused then
  const Error* failed_ = nullptr;  // why joining failed, while lingering
  int refusals_ = 0;
  std::string lastRefusal_;
  std::set<std::string, std::less<>> loggedRefusals_;  // who and why, without the port
  std::list<Newcomer> newcomers_;                      // not yet proven, oldest first
  std::vector<std::optional<Member>> members_;         // by rank; 0 stays empty
};

}  // namespace tacc
