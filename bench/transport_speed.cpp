// transport_speed: latency and bandwidth of the network transports between two processes of this machine, to compare
// with ucx_perftest and fi_pingpong.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "transports/network_transport.hpp"

namespace {

using namespace tacc;

constexpr std::size_t longestAddress = 4096;
constexpr std::size_t pageBytes = 4096;

struct Options {
  std::string kind;
  std::string interface;
  std::size_t smallBytes = 8;
  std::vector<std::size_t> largeBytes = {64 << 10, 1 << 20, 8 << 20};
  int repetitions = 5;
  double seconds = 0.3;     // of each measurement
  std::size_t window = 16;  // messages in flight when bandwidth is measured
  bool byTurns = false;     // bandwidth is of messages to and fro
  bool encrypts = false;    // as with TACC_ENCRYPTION=on; tcp alone
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Freer {
  void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
};
/// It begins with a page, as those of the libraries' own programs: elsewhere the kernel copies up to a third slower.
using Buffer = std::unique_ptr<std::byte[], Freer>;

/// One end of the pair. Rank 0 measures, rank 1 follows.
class End {
 public:
  End(const NetworkTransportKind& kind, const Options& options, int rank, int socket)
      : transport_(
            kind.make({.rank = rank, .ranks = 2, .interfaces = options.interface, .encrypts = options.encrypts})),
        rank_(rank) {
    std::vector<std::byte> own = transport_->address();
    std::vector<std::byte> other(longestAddress);
    if (::send(socket, own.data(), own.size(), 0) < 0) failErrno("cannot send the address");
    const ssize_t bytes = ::recv(socket, other.data(), other.size(), 0);
    if (bytes <= 0) failErrno("cannot receive the address");
    other.resize(static_cast<std::size_t>(bytes));
    transport_->setPeers(rank == 0 ? std::vector{own, other} : std::vector{other, own});
  }

  const NetworkTransport& transport() const { return *transport_; }

  /// Seconds of `rounds` round trips.
  double pingPong(std::size_t bytes, int rounds) {
    reserve(bytes);
    NetworkRequest sent;
    NetworkRequest received;
    const double start = now();
    for (int i = 0; i < rounds; ++i) {
      // The next receive is posted before the peer can answer, as an engine does.
      transport_->receive(1 - rank_, tag_, in_.get(), bytes, received);
      if (rank_ == 0) transport_->send(1, tag_, out_.get(), bytes, sent);
      wait(received);
      if (rank_ == 1) transport_->send(0, tag_, out_.get(), bytes, sent);
      wait(sent);
      ++tag_;
    }
    return now() - start;
  }

  /// Seconds until `messages` of rank 0 have been received by rank 1.
  double stream(std::size_t bytes, int messages, std::size_t window) {
    reserve(bytes);
    std::vector<NetworkRequest> requests(window);
    const double start = now();
    for (int i = 0; i < messages; ++i) {
      NetworkRequest& request = requests[static_cast<std::size_t>(i) % window];
      wait(request);
      if (rank_ == 0)
        transport_->send(1, tag_++, out_.get(), bytes, request);
      else
        transport_->receive(0, tag_++, in_.get(), bytes, request);
    }
    for (NetworkRequest& request : requests) wait(request);
    pingPong(1, 1);  // all is received
    return now() - start;
  }

  /// Rank 0's number, known to both.
  double agree(double number) {
    NetworkRequest request;
    if (rank_ == 0)
      transport_->send(1, tag_++, &number, sizeof number, request);
    else
      transport_->receive(0, tag_++, &number, sizeof number, request);
    wait(request);
    return number;
  }

 private:
  void wait(const NetworkRequest& request) {
    while (!request.done) transport_->progress();
  }
  void reserve(std::size_t bytes) {
    if (bytes <= reserved_) return;
    reserved_ = (bytes + pageBytes - 1) / pageBytes * pageBytes;
    for (Buffer* buffer : {&in_, &out_}) {
      buffer->reset(static_cast<std::byte*>(std::aligned_alloc(pageBytes, reserved_)));
      if (*buffer == nullptr) throw std::bad_alloc();
      std::memset(buffer->get(), 1, reserved_);
    }
  }

  std::unique_ptr<NetworkTransport> transport_;
  int rank_;
  std::uint32_t tag_ = 0;
  std::size_t reserved_ = 0;
  Buffer out_;
  Buffer in_;
};

/// Sorted seconds of each repetition, by turns of a number that takes about as long as asked.
template <class Run>
std::vector<double> measure(End& end, const Options& options, const Run& run) {
  run(10);  // connects, and warms up
  const int turns = static_cast<int>(end.agree(std::max(20.0, options.seconds / (run(20) / 20))));
  std::vector<double> seconds;
  for (int i = 0; i < options.repetitions; ++i) seconds.push_back(run(turns) / turns);
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

void measureAll(const NetworkTransportKind& kind, const Options& options, int rank, int socket) {
  End end(kind, options, rank, socket);
  if (rank == 0) fmt::print("{}\n", end.transport().describe());
  const auto latency = measure(end, options, [&](int rounds) { return end.pingPong(options.smallBytes, rounds); });
  if (rank == 0) {
    fmt::print("  latency   {:>9} bytes  median {:8.2f} us    best {:8.2f} us\n", options.smallBytes,
               latency[latency.size() / 2] * 1e6 / 2, latency.front() * 1e6 / 2);
  }
  for (const std::size_t bytes : options.largeBytes) {
    const auto times = measure(end, options, [&](int messages) {
      return options.byTurns ? end.pingPong(bytes, messages) / 2 : end.stream(bytes, messages, options.window);
    });
    const double megabytes = static_cast<double>(bytes) / (1 << 20);
    if (rank == 0) {
      fmt::print("  bandwidth {:>9} bytes  median {:8.0f} MiB/s best {:8.0f} MiB/s\n", bytes,
                 megabytes / times[times.size() / 2], megabytes / times.front());
    }
  }
}

/// The libraries are used in children only: they do not survive a fork.
bool runPair(const NetworkTransportKind& kind, const Options& options) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) failErrno("cannot make a socket pair");
  std::fflush(nullptr);
  for (int rank = 0; rank < 2; ++rank) {
    if (::fork() != 0) continue;
    int status = 0;
    try {
      measureAll(kind, options, rank, sockets[rank]);
    } catch (const std::exception& error) {
      fmt::print(stderr, "transport_speed: {}: {}\n", kind.name, error.what());
      status = 1;
    }
    std::fflush(nullptr);
    ::_exit(status);
  }
  ::close(sockets[0]);
  ::close(sockets[1]);
  bool isWell = true;
  for (int status = 0; ::wait(&status) > 0;) isWell = isWell && status == 0;
  return isWell;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Latency and bandwidth of the network transports between two processes of this machine.");
  app.add_option("--kind", options.kind, "one kind only: tcp, ofi or ucx");
  app.add_option("--interface", options.interface, "the network interface to use");
  app.add_option("--small", options.smallBytes, "bytes of the message whose latency is measured");
  app.add_option("--large", options.largeBytes, "bytes of the messages whose bandwidth is measured");
  app.add_option("--repetitions", options.repetitions, "how often each is measured")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "how long one measurement takes");
  app.add_option("--window", options.window, "messages in flight when bandwidth is measured")
      ->check(CLI::Range(1, 10'000));
  app.add_flag("--encrypt", options.encrypts, "As with TACC_ENCRYPTION=on; with --kind tcp");
  app.add_flag("--by-turns", options.byTurns,
               "bandwidth of messages to and fro, one in flight, as fi_pingpong measures it");
  CLI11_PARSE(app, argc, argv);

  bool isWell = true;
  for (const NetworkTransportKind& kind : networkTransports()) {
    if (kind.make == nullptr || kind.name == "mpi" || (!options.kind.empty() && kind.name != options.kind)) continue;
    isWell = runPair(kind, options) && isWell;
  }
  return isWell ? 0 : 1;
}
