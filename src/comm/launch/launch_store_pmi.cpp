#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "comm/launch/launch_store.hpp"
#include "core/error.hpp"
#include "core/parse.hpp"

namespace tacc {
namespace {

constexpr std::string_view key = "tacc-meeting";
constexpr std::size_t longestLine = 4096;

/// One end of a conversation of lines, "cmd=NAME KEY=VALUE ...", of which each but the barrier's is answered at once.
/// The socket is the MPI's too, so nothing is read of it beyond the answer.
class Conversation {
 public:
  Conversation(int socket, const Launch& launch, StoreDeadline deadline)
      : socket_(socket), launch_(launch), deadline_(deadline) {}

  void say(std::string line) {
    line += '\n';
    for (std::string_view rest = line; !rest.empty();) {
      ssize_t sent = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == ENOTSOCK) sent = ::write(socket_, rest.data(), rest.size());
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) failErrno("rank {}: {} does not take words for its store (PMI)", launch_.rank, launch_.launcher);
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  /// The next line, which must be that answer and tell of no failure. `what`: for messages.
  std::string hear(std::string_view command, std::string_view what) {
    std::string line = readLine(what);
    if (valueIn(line, "cmd") != command || (valueIn(line, "rc") != "0" && !valueIn(line, "rc").empty()))
      fail(taccSystemError,
           "rank {}: {} answers \"{}\" where it is to {} (PMI); set TACC_RENDEZVOUS=HOST:PORT to rank "
           "0's host and a free port of it, the same on every rank",
           launch_.rank, launch_.launcher, line, what);
    return line;
  }

  /// "" where the line has no such word.
  static std::string valueIn(std::string_view line, std::string_view name) {
    while (!line.empty()) {
      const std::size_t end = std::min(line.find(' '), line.size());
      const std::string_view word = line.substr(0, end);
      if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
        return std::string(word.substr(name.size() + 1));
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    return "";
  }

 private:
  std::string readLine(std::string_view what) {
    std::string line;
    for (;;) {
      await(what);
      char byte = 0;
      const ssize_t got = ::read(socket_, &byte, 1);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0 || line.size() == longestLine)
        fail(taccSystemError, "rank {}: {} has ended the conversation (PMI) where it was to {}", launch_.rank,
             launch_.launcher, what);
      if (byte == '\n') return line;
      line += byte;
    }
  }

  void await(std::string_view what) const {
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now()).count();
      pollfd waiting{socket_, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<long long>(left, 0, 1'000'000)));
      if (ready > 0) return;
      if (ready < 0 && errno != EINTR) failErrno("rank {}: poll of PMI's socket", launch_.rank);
      if (left <= 0)
        fail(taccTimeout,
             "rank {}: {} did not {} in time (PMI); all {} ranks of the job have to call taccCommInitEnv, or none may",
             launch_.rank, launch_.launcher, what, launch_.ranks);
    }
  }

  int socket_;
  const Launch& launch_;
  StoreDeadline deadline_;
};

/// A conversation that this process has begun. Hydra takes one that ends without a farewell for the end of a process
/// that failed, and kills the others of the job. A farewell ends the conversation for good, so it is for the exit; a
/// program's MPI says it itself, in MPI_Finalize, and closes the socket.
class Farewell {
 public:
  /// Says it for `socket` when the process exits; the last socket counts. Not in children made by fork.
  static void promise(int socket) {
    static const int registered = std::atexit([] { sayNow(); });
    (void)registered;
    struct stat facts {};
    if (::fstat(socket, &facts) != 0) return;
    socket_ = socket;
    device_ = facts.st_dev;
    inode_ = facts.st_ino;
    process_ = ::getpid();
  }

 private:
  static constexpr int patience = 1000;  // ms, for the answer: Hydra errs where nobody is there to read it

  static void sayNow() noexcept {
    constexpr std::string_view line = "cmd=finalize\n";
    struct stat facts {};
    if (process_ != ::getpid() || ::fstat(socket_, &facts) != 0) return;
    if (facts.st_dev != device_ || facts.st_ino != inode_) return;  // closed, and its number is another file's
    if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(line.size()))
      return;
    pollfd answer{socket_, POLLIN, 0};
    (void)::poll(&answer, 1, patience);
  }

  static inline int socket_ = -1;
  static inline dev_t device_ = 0;
  static inline ino_t inode_ = 0;
  static inline pid_t process_ = 0;
};

}  // namespace

std::string shareByPmi(int socket, const Launch& launch, const std::string& own, StoreDeadline deadline) {
  // Whether this process waits in the barrier already, from a call that was given up.
  static bool isInBarrier = false;
  Conversation store(socket, launch, deadline);
  static std::string name;
  if (!isInBarrier) {
    store.say("cmd=init pmi_version=1 pmi_subversion=1");
    store.hear("response_to_init", "begin a conversation");
    Farewell::promise(socket);
    store.say("cmd=get_my_kvsname");
    name = Conversation::valueIn(store.hear("my_kvsname", "name the store"), "kvsname");
    if (!own.empty()) {
      store.say(fmt::format("cmd=put kvsname={} key={} value={}", name, key, own));
      store.hear("put_result", "keep where rank 0 is met");
    }
    store.say("cmd=barrier_in");
    isInBarrier = true;
  }
  store.hear("barrier_out", "tell that all ranks have come");
  isInBarrier = false;
  store.say(fmt::format("cmd=get kvsname={} key={}", name, key));
  return Conversation::valueIn(store.hear("get_result", "say where rank 0 is met"), "value");
}

std::string shareByPmi(const Launch& launch, const std::string& own, StoreDeadline deadline) {
  const char* text = std::getenv("PMI_FD");
  const auto socket = parseInteger(text == nullptr ? "" : text, 0, 1 << 20);
  if (!socket)
    fail(taccSystemError, "rank {}: PMI_FD=\"{}\" is no descriptor", launch.rank, text == nullptr ? "" : text);
  return shareByPmi(static_cast<int>(*socket), launch, own, deadline);
}

}  // namespace tacc
