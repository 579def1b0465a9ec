// What rank 0 and gateways have in common: the ranks that are connected to them, and those behind these.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/bootstrap/reception.hpp"
#include "comm/bootstrap/wait.hpp"
#include "core/error.hpp"
#include "transports/inet_address.hpp"

namespace tacc {

/// A rank that has come: to this one, or to a gateway behind it. Plain, to be sent.
struct Arrival {
  Introduction who;
  std::uint32_t parent;     // the rank that it is connected to
  std::uint32_t elsewhere;  // 1: it may be on another host than rank 0
};

/// Where a joiner is sent on to. Plain, to be sent.
struct Redirect {
  InetAddress::V6 address;
  std::uint32_t port;
};

/// What is done with what comes. Each may throw an Error, which ends the star or the tree.
class BranchOwner {
 public:
  virtual ~BranchOwner() = default;
  /// Somebody wants to come.
  virtual void examine(const Arrival& arrival) = 0;
  /// Somebody has come, here or behind a branch.
  virtual void arrive(const Arrival& arrival) = 0;
  /// A message of a rank, other than of its arrival or its end.
  virtual void give(int rank, Message message) = 0;
};

/// What one branch is told in a scatter.
struct Answer {
  Payload payload;
  std::vector<int> descriptors;  // stay open until scatter() returns
};

class Branches {
 public:
  enum class Phase {
    joining,
    gathering,
    scattering,
    lingering  // joining has failed; those who still come are told why
  };
  struct Branch {
    Channel channel;
    bool overTcp;
    Introduction who;
    std::vector<int> behind;  // ranks that are reached by way of it

    int rank() const noexcept { return static_cast<int>(who.rank); }
  };

  /// `width`: with this number of branches over TCP, further ones are sent on to one of them that is a gateway.
  Branches(std::vector<Listener> listeners, const Introduction& self, const Secret& secret, int width,
           BranchOwner& owner)
      : reception_(std::move(listeners), self, secret), self_(self), width_(width), owner_(owner) {}

  /// Adds what is waited for; `next` becomes the moment at which serve() is due in any case, if that is earlier.
  void addDescriptors(std::vector<pollfd>& sockets, Phase phase, Deadline& next) const;
  /// `sockets`: those that addDescriptors() added, with their revents. Throws the failure that a branch tells or
  /// suffers.
  void serve(std::span<const pollfd> sockets, Phase phase);

  /// Queues the answers and sends what can be sent at once. `answerTo` is asked once for each branch.
  void queue(MessageKind kind, const std::function<Answer(const Branch& branch)>& answerTo);
  bool hasOutput() const noexcept;
  /// Whether a branch has gone; takes none of its messages.
  bool hasLostSomeone() const;

  /// Those who come from now on are told this. It must stay.
  void refuseWith(const Error& error) noexcept { failed_ = &error; }
  /// Ranks that have proven to be of the job, also those refused then.
  std::size_t proven() const noexcept { return proven_.size(); }
  /// The Error that was thrown last is one of a rank behind, and names it.
  bool isForeign() const noexcept { return isForeign_; }
  /// Tells all branches, for a moment, and closes everything.
  void tellFailure(const Error& error) noexcept;

  Reception& reception() noexcept { return reception_; }
  const Reception& reception() const noexcept { return reception_; }
  std::vector<Branch>& all() noexcept { return branches_; }
  const std::vector<Branch>& all() const noexcept { return branches_; }

 private:
  void admit(Guest& guest);
  std::optional<Redirect> redirectFor(const Guest& guest);
  void serveBranch(std::size_t index, short events, Phase phase);
  void handle(std::size_t index, Message message);
  void giveAll(const Message& parts);
  void lookForFailure();
  [[noreturn]] void failLost(const Branch& branch, std::string_view when);
  [[noreturn]] void failTold(const Branch& branch, const Message& message);
  std::string describe(const Branch& branch) const;

  Reception reception_;
  Introduction self_;
  int width_;
  BranchOwner& owner_;
  std::vector<Branch> branches_;
  std::size_t lastGateway_ = 0;
  int overTcp_ = 0;  // branches
  std::set<std::uint32_t> proven_;
  std::set<std::uint32_t> told_;  // of failed_
  bool isForeign_ = false;
  const Error* failed_ = nullptr;
};

/// Appends a rank's part to those that a gateway sends on together, all of one kind.
void appendPart(std::vector<std::byte>& parts, int rank, const Message& part);

}  // namespace tacc
