// Sockets in the memory of this process, in place of the kernel's. A target that is linked with memory_calls.cpp opens,
// connects, sends, polls and closes by the usual calls and never enters the kernel. No wait takes time: the steady
// clock goes on by what was waited for. For one thread.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tacc::fuzz {

/// `work` is called by a poll() that finds nothing ready, before the time it waits for is over: it may send. Empty:
/// none.
void setWhileWaiting(std::function<void()> work);
/// How many descriptors of these sockets are open.
int openDescriptors() noexcept;

/// What a descriptor stands for.
class MemorySocket {
 public:
  enum class Kind { stream, datagram, event };
  using Shared = std::shared_ptr<MemorySocket>;

  explicit MemorySocket(Kind kind) noexcept : kind_(kind) {}
  ~MemorySocket();
  MemorySocket(const MemorySocket&) = delete;
  MemorySocket& operator=(const MemorySocket&) = delete;

  static void connect(const Shared& one, const Shared& other) noexcept;
  /// The one that was bound to this name; null: nobody.
  static MemorySocket* find(const std::string& name) noexcept;

  Kind kind() const noexcept { return kind_; }
  const std::string& name() const noexcept { return name_; }
  bool isListening() const noexcept { return isListening_; }

  // As the calls of these names; a result below 0 is -errno.
  int bind(std::string name);
  int listen() noexcept;
  int call(const std::string& name);  // connect()
  Shared accept() noexcept;           // null: nobody waits
  void shutdown() noexcept;           // SHUT_WR
  ssize_t send(const msghdr& message);
  ssize_t receive(msghdr& message, int flags);
  ssize_t ring() noexcept;     // write() of an event
  ssize_t silence() noexcept;  // read() of one
  short events(short wanted) const noexcept;

 private:
  /// A descriptor on its way: one of these sockets, or the kernel's.
  struct Passed {
    Shared socket;
    int fd = -1;
    Passed(Shared made, int number) noexcept : socket(std::move(made)), fd(number) {}
    Passed(Passed&& other) noexcept : socket(std::move(other.socket)), fd(std::exchange(other.fd, -1)) {}
    Passed& operator=(Passed&&) = delete;
    ~Passed();
    int take();
  };
  /// What was sent at once. Of streams, those without descriptors are joined.
  struct Piece {
    std::vector<std::byte> bytes;
    std::size_t read = 0;
    std::vector<Passed> passed;
  };

  static std::vector<Passed> passedWith(const msghdr& message);
  static void handOver(std::vector<Passed>& passed, msghdr& message, std::size_t& room);
  ssize_t enqueue(const msghdr& message);
  bool isFull() const noexcept;

  Kind kind_;
  std::string name_;
  bool isListening_ = false, isRung_ = false;
  bool isShut_ = false;   // nothing more comes
  bool isReset_ = false;  // and the other end did not read all
  MemorySocket* peer_ = nullptr;
  bool wasConnected_ = false;
  std::list<Piece> incoming_;
  std::size_t waiting_ = 0;  // bytes
  std::list<Shared> callers_;
};

/// Numbers of descriptors, from one on that the kernel does not give.
class DescriptorTable {
 public:
  static constexpr int first = 1 << 19;

  static DescriptorTable& get() noexcept;
  static bool isOurs(int fd) noexcept { return fd >= first; }
  int add(MemorySocket::Shared socket);
  /// Null: it is closed.
  MemorySocket::Shared find(int fd) const noexcept;
  MemorySocket* at(int fd) const noexcept;
  bool close(int fd) noexcept;
  int open() const noexcept { return open_; }

 private:
  std::vector<MemorySocket::Shared> sockets_;
  std::vector<int> free_;
  int open_ = 0;
};

}  // namespace tacc::fuzz
