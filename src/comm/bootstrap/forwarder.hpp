// What a gateway does for the ranks behind it: it carries their messages to its own parent, and the answers to them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "comm/bootstrap/branches.hpp"
#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/completion.hpp"
#include "comm/bootstrap/wait.hpp"
#include "comm/control/control_tree.hpp"
#include "core/error.hpp"

namespace tacc {

class Forwarder : private BranchOwner {
 public:
  /// Admits ranks from now on. `self`: the gateway; `width`: of branches over TCP.
  Forwarder(std::vector<Listener> listeners, const Introduction& self, const Secret& secret, int width)
      : self_(self), branches_(std::move(listeners), self, secret, width, *this) {}

  /// Adds what is waited for; `next` becomes the moment at which serve() is due in any case, if that is earlier.
  void addDescriptors(std::vector<pollfd>& sockets, Deadline& next) const {
    branches_.addDescriptors(sockets, phase_, next);
  }
  /// Reads what has come, and queues it for the parent. `sockets`: those that addDescriptors() added. Throws the
  /// failure that a branch tells or suffers.
  void serve(std::span<const pollfd> sockets, Channel& parent);

  /// All have joined: nobody is admitted any more, and those behind are told. `own`: what this rank was told;
  /// `address`: at which it reached its parent.
  void complete(const Completion& own, const InetAddress::V6& address, double timeoutSeconds,
                const Interrupt& interrupt);
  /// Hands an answer on, and returns when it is on its way to all branches.
  void scatter(MessageKind kind, const Payload& payload, std::string_view operation, double timeoutSeconds,
               const Interrupt& interrupt);

  /// The Error that was thrown last is one of a rank behind, and names it.
  bool isForeign() const noexcept { return branches_.isForeign(); }
  void tellFailure(const Error& error) noexcept { branches_.tellFailure(error); }
  /// The connections; afterwards only the destructor may be called.
  std::vector<ControlTree::Branch> release();
  bool hasLostSomeone() const { return branches_.hasLostSomeone(); }

 private:
  /// Rank 0 looks at the rest.
  void examine(const Arrival& arrival) override;
  void arrive(const Arrival& arrival) override;
  void give(int rank, Message message) override { appendPart(parts_, rank, message); }

  Introduction self_;
  Branches::Phase phase_ = Branches::Phase::joining;
  std::vector<std::byte> arrivals_, parts_;  // not yet sent on
  Branches branches_;
};

}  // namespace tacc
