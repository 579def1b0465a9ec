// The end of the bootstrap star at a rank other than 0.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/channel.hpp"
#include "comm/connect.hpp"
#include "comm/handshake.hpp"
#include "comm/wait.hpp"

namespace tacc {

class Spoke {
 public:
  /// Looks for rank 0 at every place that the id names until one proves to be it, and returns when it says that all
  /// have joined.
  Spoke(const UniqueIdContents& id, int ranks, int rank, double timeoutSeconds, const Interrupt& interrupt);

  /// Runs one collective; an Error in it is told to rank 0 (which tells the others) and ends the connection.
  template <class Work>
  auto collective(const Work& work) {
    try {
      return work();
    } catch (const Error& error) {
      tellFailure(error);
      throw;
    }
  }

  /// Inside collective() only.
  void send(MessageKind kind, Payload payload, std::span<const int> descriptors, std::string_view operation,
            double timeoutSeconds);
  /// The next message, which must be of `kind`. Inside collective() only.
  Message receive(MessageKind kind, std::string_view operation, double timeoutSeconds);

  /// Listens for `seconds`: throws the failure that rank 0 tells or suffers meanwhile. Inside collective() only.
  void listen(double seconds);

  /// Every rank, rank 0 included, is connected over unix sockets.
  bool allUnix() const noexcept { return allUnix_; }
  /// The address of this end of the connection to rank 0; nothing over unix.
  std::optional<InetAddress> localAddress() const noexcept { return InetAddress::ofSocket(channel_.fd()); }
  /// The connection to rank 0; afterwards only the destructor may be called.
  Channel release() noexcept { return std::move(channel_); }

  /// Called again and again while this rank waits for rank 0, if it is set.
  std::function<void()> idleWork;

 private:
  /// How far an attempt came.
  enum class Progress { none, connected, challenged };
  struct Place {
    std::optional<InetAddress> address;  // nothing: the unix name
    std::string outcome;                 // of the last of the attempts that came furthest
    Progress progress;
  };

  void listPlaces(const UniqueIdContents& id);
  void join(const UniqueIdContents& id, double timeoutSeconds);
  bool tryPlaces(const Secret& secret, double patience, double proofPatience, const Deadline& deadline);
  Attempt connect(Place& place, double patience, const Deadline& deadline);
  std::string proveMembership(const Secret& secret, double patience, double proofPatience, const Deadline& deadline);
  std::string describeSilence(bool spoke);
  std::optional<Message> receiveBefore(const Deadline& deadline);
  std::string describeHub() const;
  std::string describePlaces() const;
  [[noreturn]] void failRankZeroEnded(std::string_view operation);
  void comeToSay(const Error& error, const UniqueIdContents& id) noexcept;
  void nap(double seconds);
  void tellFailure(const Error& error) noexcept;

  const Interrupt* interrupt_;
  Introduction self_;
  int rank_;
  std::string unixName_;                // empty: rank 0 is not on this host
  std::vector<Place> places_;           // in the order in which they are tried
  Progress progress_ = Progress::none;  // of the attempt at hand
  bool overTcp_ = false;
  bool allUnix_ = true;
  std::optional<Introduction> hub_;  // once it has proven itself
  Channel channel_{FileDescriptor()};
};

}  // namespace tacc
