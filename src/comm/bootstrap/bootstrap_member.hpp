// The bootstrap at a rank other than 0: the connection to its parent, which is rank 0 or a gateway, and, where this
// rank is a gateway itself, the ranks behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/completion.hpp"
#include "comm/bootstrap/connect.hpp"
#include "comm/bootstrap/forwarder.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/bootstrap/wait.hpp"
#include "comm/control/control_tree.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"

namespace tacc {

/// When ranks meet in a tree, and how wide it is.
struct TreeShape {
  int width;           // more ranks meet in a tree; and the branches over TCP that a rank has in it, or a few more
  std::uint64_t host;  // tells hosts apart that share the namespace of unix sockets; for tests
  bool encrypts;       // TACC_ENCRYPTION
  bool isHeardElsewhere = false;  // BootstrapOptions
};

class BootstrapMember {
 public:
  /// Looks for rank 0 at every place that the id names until one proves to be it, and returns when it says that all
  /// have joined. In a tree, only the first rank of each host does, and the others find that one.
  BootstrapMember(const UniqueIdContents& id, int ranks, int rank, double timeoutSeconds, const TreeShape& shape,
                  const Interrupt& interrupt, std::function<void()> work);

  /// Runs one collective; what fails in it is an Error, told to the parent (rank 0 tells all) and to the ranks behind
  /// this one, and ends the connections.
  template <class Work>
  auto collective(const Work& work) {
    try {
      return withErrors(rank_, "joining", work);
    } catch (const Error& error) {
      tellFailure(error);
      throw;
    }
  }

  /// Inside collective() only.
  void send(MessageKind kind, Payload payload, std::span<const int> descriptors, std::string_view operation,
            double timeoutSeconds);
  /// The next message, which must be of `kind`, handed on to the ranks behind this one. Inside collective() only.
  Message receive(MessageKind kind, std::string_view operation, double timeoutSeconds);

  /// Listens for `seconds`: throws the failure that the parent tells or suffers meanwhile. Inside collective() only.
  void listen(double seconds);

  /// Whether the parent, or a rank behind this one, has gone; takes no message.
  bool hasLostSomeone() const;

  /// Every rank, rank 0 included, is connected over unix sockets.
  bool allUnix() const noexcept { return allUnix_; }
  /// The address at which this host reached rank 0 or another gateway; nothing on rank 0's host.
  std::optional<InetAddress> localAddress() const noexcept;
  /// The connections; afterwards only the destructor may be called.
  ControlTree release();

  /// Called again and again while this rank waits for its parent, if it is set.
  std::function<void()> idleWork;

 private:
  /// How far an attempt came.
  enum class Progress { none, connected, challenged };
  enum class PlaceKind { rankZeroHere, gatewayHere, network };
  struct Place {
    PlaceKind kind;
    std::optional<InetAddress> address;  // of the network
    std::string outcome;                 // of the last of the attempts that came furthest
    Progress progress;
  };

  void listPlaces(const UniqueIdContents& id, bool inTree);
  void join(const UniqueIdContents& id, double timeoutSeconds);
  bool tryPlaces(const Secret& secret, double patience, double proofPatience, const Deadline& deadline);
  Attempt connect(Place& place, double patience, const Deadline& deadline);
  Attempt connectToGateway();
  Attempt connectToNetwork(const Place& place, double patience, const Deadline& deadline);
  std::string proveMembership(const Secret& secret, double patience, double proofPatience, const Deadline& deadline);
  std::string awaitPlace(const Secret& secret, double proofPatience, const Deadline& deadline);
  std::string followRedirect(const Redirect& redirect, const Secret& secret, double proofPatience,
                             const Deadline& deadline);
  void becomeComplete(const Secret& secret, double timeoutSeconds);
  void checkRoute(const std::vector<int>& route) const;
  std::string describeSilence(bool isHeard);
  std::optional<Message> receiveBefore(const Deadline& deadline);
  std::string describeParent() const;
  std::string describePlaces() const;
  [[noreturn]] void failParentEnded(std::string_view operation);
  void comeToSay(const Error& error, const UniqueIdContents& id, double seconds) noexcept;
  void nap(double seconds);
  void doIdleWork();
  void tellFailure(const Error& error) noexcept;

  const Interrupt* interrupt_;
  Introduction self_;
  int rank_;
  TreeShape shape_;
  std::string unixName_;                  // empty: rank 0 is not on this host
  std::string gatewayName_;               // empty: every rank connects to rank 0
  std::optional<Deadline> gatewayOpens_;  // from when on its name is not waited for
  std::vector<Place> places_;             // in the order in which they are tried
  Progress progress_ = Progress::none;    // of the attempt at hand
  bool isTold_ = false;                   // the other end has said why this rank cannot join, or idleWork
  bool overTcp_ = false;
  bool allUnix_ = true;
  std::optional<Introduction> parent_;          // once it has proven itself
  std::optional<std::vector<Listener>> doors_;  // where this rank is its host's gateway
  Completion completion_{};
  Channel channel_{FileDescriptor()};
  std::unique_ptr<Forwarder> forwarder_;  // null: this rank is no gateway
};

}  // namespace tacc
