// The rendezvous of a communicator's ranks, and what they exchange before anything else stands.
//
// A star of stream sockets around rank 0. Rank 0 listens at a unix name derived from the id and at the TCP port in it;
// the others try the name if they may be on the same host, then each address in the id, and retry until the time-out.
// Both ends prove that they know the id's secret (handshake.hpp); strangers, garbage and connections that say nothing
// are refused and hinder nobody. No threads: all work is done inside the calls.
//
// Many ranks meet in a tree: the first rank of each other host becomes its gateway (bootstrap_member.hpp), which the
// others of that host connect to, and rank 0 sends gateways that are too many for it on to others (branches.hpp). A
// gateway carries the messages of the ranks behind it (forwarder.hpp).
//
// A rank that fails tells rank 0, rank 0 tells all: so an Error on one rank is an Error with the same text on every
// rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/wait.hpp"
#include "comm/control/control_tree.hpp"
#include "core/error.hpp"
#include "tacc/tacc.h"
#include "transports/file_descriptor.hpp"
#include "transports/keyed_hash.hpp"

namespace tacc {

class BootstrapRoot;
class BootstrapMember;

/// How ranks meet.
struct BootstrapOptions {
  int treeWidth = 32;                   // TACC_JOIN_WIDTH
  std::uint64_t host = 0;               // for tests: tells hosts apart that share the namespace of unix sockets
  std::function<void()> idleWork = {};  // as setIdleWork(), from the beginning
  bool encrypts = false;                // TACC_ENCRYPTION
  /// A rank that cannot go on tells the others by what they share already, which `idleWork` looks at, and does not
  /// come here to say so.
  bool isHeardElsewhere = false;
};

/// Every call is collective and for one thread at a time, and throws
///  - taccTimeout when a rank does not come in time, naming it;
///  - taccRemoteError when a rank died, failed or was interrupted, naming it;
///  - taccInvalidUsage when the ranks do not fit together.
/// After an Error every further call throws.
class Bootstrap {
 public:
  /// Returns when all `ranks` have joined. Checks that no rank number is taken twice and that all agree on `ranks` and
  /// on the library's version. `timeoutSeconds` (> 0) also bounds each later call. A request on `stop` interrupts it.
  Bootstrap(const taccUniqueId& id, int ranks, int rank, double timeoutSeconds, const std::stop_token& stop = {},
            const BootstrapOptions& options = {});
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  /// Every rank gives the same number of bytes; every rank gets all, in rank order.
  std::vector<std::byte> allGather(std::span<const std::byte> mine);
  /// Byte strings of any length; every rank gets all.
  std::vector<std::vector<std::byte>> allGatherStrings(const std::vector<std::byte>& mine);
  /// Every rank gets what rank 0 gives; the others' bytes are not looked at.
  std::vector<std::byte> broadcast(std::span<const std::byte> ofRankZero);
  /// allGather() of one plain value of every rank.
  template <class T>
  requires std::is_trivially_copyable_v<T> std::vector<T> gatherValues(const T& mine) {
    const auto bytes = allGather(std::as_bytes(std::span(&mine, 1)));
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(static_cast<void*>(values.data()), bytes.data(), bytes.size());
    return values;
  }

  /// Whether all ranks are connected to rank 0, and over unix sockets, so that descriptors can pass. Equal on all
  /// ranks.
  bool allUnix() const noexcept { return allUnix_; }

  /// Where this rank's host reached rank 0, or another gateway, over TCP: the address at this end, such as
  /// "192.0.2.2", and the interface that has it, such as "eth0". Empty on rank 0's host.
  const std::string& localAddressToRankZero() const noexcept { return localAddress_; }
  const std::string& interfaceToRankZero() const noexcept { return interface_; }

  /// A key that follows from the id's secret: the same on all ranks, known to nobody else, and another one for every
  /// purpose.
  Key deriveKey(Purpose purpose) const;

  /// Hands over the connections. A barrier of the caller's (allGather) should precede it, so that no rank still waits
  /// for others. Afterwards every collective call throws.
  ControlTree releaseTree();

  /// Only where allUnix(), else taccInternalError. Rank 0 gives a descriptor (the others -1, it is not looked at):
  /// every rank, rank 0 too, gets its own copy.
  FileDescriptor broadcastDescriptor(int fd);

  /// From now on called again and again while this rank waits for others; empty: no more. What it throws ends the call.
  void setIdleWork(std::function<void()> work);

  /// Tells all ranks that this one failed between two calls; their next call throws an Error with this text.
  void announceFailure(const Error& error) noexcept;

  /// For a rank that sees another one gone, but not why: listens for a moment, and throws what the others tell. Between
  /// two calls, before this rank takes part in the next.
  void awaitCause();

  /// For work of the caller's between two calls: throws what awaitCause() does once a rank that this one is connected
  /// to has gone, or this one was interrupted. Takes no message otherwise.
  void checkOthers();

  /// From any thread: makes a blocked call, or the next one, throw taccRemoteError.
  void interrupt() noexcept;
  /// Throws taccRemoteError after interrupt(): for work of the caller's between two calls.
  void checkInterrupt() const;

 private:
  template <class Work>
  auto collective(const Work& work);
  void findOwnAddress();
  void needUnix(std::string_view operation) const;

  int ranks_;
  int rank_;
  double timeoutSeconds_;
  Key secret_{};
  Interrupt interrupt_;
  struct Stopper {
    Interrupt& interrupt;
    void operator()() const noexcept { interrupt.raise(); }
  };
  std::stop_callback<Stopper> stopper_;
  bool allUnix_ = true;
  std::string localAddress_;
  std::string interface_;
  std::unique_ptr<BootstrapRoot> root_;      // rank 0 of several
  std::unique_ptr<BootstrapMember> member_;  // the others
  std::optional<Error> broken_;              // the Error that ended it
};

}  // namespace tacc
