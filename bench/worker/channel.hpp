#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <optional>
#include <string>

namespace tacc::bench {

/// Where the coordinator listens: a path, which processes in other network namespaces reach too, or else a name in the
/// abstract namespace, of which nothing can be left behind. Throws std::invalid_argument if `address` is too long.
struct SocketName {
  explicit SocketName(const std::string& address);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }

  sockaddr_un name{};
  socklen_t length;
};

/// A line-by-line conversation over a local stream socket, between the coordinator and one rank. A rank that waits for
/// its next command is asleep in read(2), so that it does not disturb the contestant that is being measured.
class Channel {
 public:
  /// Takes over the connected socket `descriptor`.
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  /// Connects to the coordinator's socket `address`. Throws std::system_error.
  static Channel connectTo(const std::string& address);

  /// Sends one line; `line` holds no newline. Throws std::system_error, also when the other side has gone.
  void send(const std::string& line);

  /// Waits for one line; nothing when the other side has closed.
  std::optional<std::string> receive();

  /// Reads what has arrived, waiting for at least one byte. False when the other side has closed.
  bool pump();

  /// The oldest complete line among what has been read, if there is one.
  std::optional<std::string> takeLine();

  /// For poll(2).
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  std::string unread_;
};

}  // namespace tacc::bench
