// Rank 0's end of the bootstrap: knows who has come, gathers from all ranks and scatters to them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/branches.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/control/control_tree.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"

namespace tacc {

class BootstrapRoot : private BranchOwner {
 public:
  /// Admits all other ranks. An Error is told to all that have joined, and for a moment to those that still come.
  /// `width`: of branches over TCP; `encrypts`: TACC_ENCRYPTION. `failure`: why rank 0 cannot go on, if that is known
  /// already: then it does not, and only tells all who come.
  BootstrapRoot(std::vector<Listener> listeners, const UniqueIdContents& id, int ranks, double timeoutSeconds,
                int width, const Interrupt& interrupt, std::function<void()> work, bool encrypts = false,
                const std::optional<Error>& failure = std::nullopt, bool isHeardElsewhere = false);

  /// Runs one collective; what fails in it is an Error, told to all ranks and ends the tree.
  template <class Work>
  auto collective(const Work& work) {
    try {
      return withErrors(0, "joining", work);
    } catch (const Error& error) {
      branches_.tellFailure(named(error));
      throw;
    }
  }

  /// One message of `kind` from every other rank, by rank (that of rank 0 is empty). Inside collective() only.
  std::vector<Message> gather(MessageKind kind, std::string_view operation, double timeoutSeconds);
  /// Sends every branch its answer, which gateways hand on; `answerTo` is asked once for each. Inside collective()
  /// only.
  void scatter(MessageKind kind, std::string_view operation, double timeoutSeconds,
               const std::function<Answer(int rank)>& answerTo);

  /// Listens for `seconds`: throws the failure that a rank tells or suffers meanwhile. Inside collective() only.
  void listen(double seconds);

  /// Whether a rank that is connected to this one has gone; takes none of its messages.
  bool hasLostSomeone() const { return branches_.hasLostSomeone(); }

  /// Called again and again while rank 0 waits, if it is set.
  std::function<void()> idleWork;

  /// Every other rank is connected to this one, over a unix socket.
  bool allUnix() const noexcept;
  /// The connections; afterwards only the destructor may be called.
  ControlTree release();

 private:
  using Phase = Branches::Phase;

  void examine(const Arrival& arrival) override;
  void arrive(const Arrival& arrival) override;
  void give(int rank, Message message) override;

  static Error named(const Error& error);
  void admitAll(const UniqueIdContents& id, double timeoutSeconds);
  void linger(const Error& error);
  void doIdleWork();
  void serve(const Deadline& deadline, Phase phase);
  int ranks() const noexcept { return static_cast<int>(members_.size()); }
  std::string describe(int rank) const;
  template <class Missing>
  std::string describeAll(const Missing& missing) const;

  const Interrupt* interrupt_;
  Introduction self_;
  std::vector<std::optional<Arrival>> members_;  // by rank; 0 stays empty
  std::vector<std::optional<Message>> parts_;    // of the gather that goes on, by rank
  MessageKind awaited_ = MessageKind::complete;  // of the parts
  int missing_ = 0;                              // arrivals or parts that have not come
  bool isHeardElsewhere_;                        // BootstrapOptions
  IdlePause pause_;
  bool isTold_ = false;  // by idleWork, what has failed and others know
  Branches branches_;
};

}  // namespace tacc
