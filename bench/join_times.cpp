// How long ranks take to meet, and what that costs the one that leads: connections, bytes, messages and processor time.
//
//   build/bench/join_times --ranks 256                    processes of this host
//   build/bench/join_times --ranks 2000 --hosts 100       20 threads each in 100 processes that take each other for
//                                                         other hosts: over TCP
//   build/bench/join_times --ranks 64 --whole             a whole communicator, not only the meeting
//   build/bench/join_times --ranks 2000 --hosts 100 --shrink --dead 20    the survivors of a communicator
//   cluster run --ranks 64 --cluster 2,4,0,0 -- build/bench/join_times --launched     the same, for ranks of a launcher
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/recovery/survivor_rendezvous.hpp"
#include "tacc/tacc.h"
#include "transports/inet_address.hpp"

// The linker puts these before the system's own (--wrap), so that all that a process sends and accepts is counted.
namespace {
std::atomic<std::uint64_t> sentBytes{0}, sentMessages{0}, accepted{0};
}
// NOLINTBEGIN(readability-identifier-naming): the linker's names.
extern "C" {
ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags);
int __real_accept4(int fd, sockaddr* address, socklen_t* size, int flags);
int __wrap_accept4(int fd, sockaddr* address, socklen_t* size, int flags);

ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  const ssize_t count = __real_sendmsg(fd, message, flags);
  if (count > 0) {
    sentBytes += static_cast<std::uint64_t>(count);
    ++sentMessages;
  }
  return count;
}
int __wrap_accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  const int socket = __real_accept4(fd, address, size, flags);
  if (socket >= 0) ++accepted;
  return socket;
}
}
// NOLINTEND(readability-identifier-naming)

namespace tacc {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int ranks = 64;
  int hosts = 1;
  std::size_t bytes = 540;  // as much as ranks tell of themselves
  int width = 32;           // TACC_JOIN_WIDTH
  bool whole = false;
  bool launched = false;
  bool own = false;     // every rank a process of its own
  bool shrink = false;  // survivors meet
  int dead = 0;         // of the ranks, the last
};

/// What a rank measured, in seconds since the beginning; in memory that all processes share.
struct Times {
  double begun, met, gathered, ended;
  bool good;
};
struct Shared {
  Clock::time_point start;
  std::uint64_t bytes, messages, accepted;  // of rank 0
  double processor;                         // seconds of rank 0's process
  std::atomic<int> placed;                  // ranks whose socket listens
};

/// Ranks lie block by block.
int hostOf(const Options& options, int rank) {
  return static_cast<int>(static_cast<long>(rank) * options.hosts / options.ranks);
}

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

SurvivorPlace* placesIn(Shared& shared, const Options& options) {
  return reinterpret_cast<SurvivorPlace*>(reinterpret_cast<Times*>(&shared + 1) + options.ranks);
}

/// Ranks listen, tell each other where, and some die; then the others meet.
void shrink(const Options& options, const taccUniqueId& id, int rank, Shared& shared, Times& times) {
  const InetAddress loopback(InetAddress::V4{127, 0, 0, 1});
  auto rendezvous = std::make_unique<SurvivorRendezvous>(rank, options.hosts > 1 ? &loopback : nullptr);
  SurvivorPlace* places = placesIn(shared, options);
  places[rank] = rendezvous->place();
  const auto waitForAll = [&](int what) {
    for (shared.placed += 1; shared.placed < what * options.ranks;)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  waitForAll(1);
  rendezvous->setPlaces({places, places + options.ranks}, openUniqueId(id).secret);
  const bool isDead = rank >= options.ranks - options.dead;
  if (isDead) rendezvous.reset();
  waitForAll(2);
  times.begun = times.met = times.gathered = times.ended = since(shared.start);
  times.good = true;
  if (isDead) return;
  const Decision decision = rendezvous->agree(
      {AgreementPurpose::shrink, ~0U, std::vector<bool>(static_cast<std::size_t>(options.ranks)), 120});
  times.met = times.gathered = times.ended = since(shared.start);
  times.good = std::ranges::count(decision.members, true) == options.ranks - options.dead;
}

void meet(const Options& options, const taccUniqueId& id, int rank, Clock::time_point start, Times& times) {
  times.begun = since(start);
  if (options.whole) {
    taccComm_t comm = nullptr;
    if (taccCommInitRank(&comm, options.ranks, id, rank) != taccSuccess) {
      fmt::print(stderr, "{}\n", taccGetLastError(nullptr));
      return;
    }
    times.met = times.gathered = since(start);
    times.good = taccCommDestroy(comm) == taccSuccess;
  } else {
    const auto host = static_cast<std::uint64_t>(hostOf(options, rank));
    Bootstrap bootstrap(id, options.ranks, rank, 120, {}, {options.width, host});
    times.met = since(start);
    const std::vector<std::byte> mine(options.bytes, static_cast<std::byte>(rank));
    const std::vector<std::byte> all = bootstrap.allGather(mine);
    times.gathered = since(start);
    times.good = all.size() == options.bytes * static_cast<std::size_t>(options.ranks);
    for (int other = 0; other < options.ranks && times.good; ++other)
      times.good = all[static_cast<std::size_t>(other) * options.bytes] == static_cast<std::byte>(other);
  }
  times.ended = since(start);
}

/// The ranks of one process. Ranks of other hosts than rank 0's believe that the id was made elsewhere.
void runProcess(const Options& options, taccUniqueId id, const std::vector<int>& ranks, Shared& shared, Times* times) {
  if (hostOf(options, ranks.front()) != 0) {
    UniqueIdContents contents = openUniqueId(id);
    contents.host ^= 1;
    id = sealUniqueId(contents);
  }
  std::vector<std::thread> threads;
  for (const int rank : ranks)
    threads.emplace_back([&, rank] {
      try {
        if (options.shrink)
          shrink(options, id, rank, shared, times[rank]);
        else
          meet(options, id, rank, shared.start, times[rank]);
      } catch (const std::exception& error) {
        fmt::print(stderr, "rank {}: {}\n", rank, error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (ranks.front() != 0) return;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  shared.processor = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  shared.bytes = sentBytes;
  shared.messages = sentMessages;
  shared.accepted = accepted;
}

void print(const Options& options, const Shared& shared, const Times* times) {
  Times last{0, 0, 0, 0, true};
  for (int rank = 0; rank < options.ranks; ++rank) {
    last.begun = std::max(last.begun, times[rank].begun);
    last.met = std::max(last.met, times[rank].met);
    last.gathered = std::max(last.gathered, times[rank].gathered);
    last.ended = std::max(last.ended, times[rank].ended);
    last.good = last.good && times[rank].good;
  }
  fmt::print(
      "{:6} ranks, {:4} hosts{}: all begun {:7.3f} s, met {:7.3f} s, {} {:7.3f} s, ended {:7.3f} s; rank 0's process "
      "accepted {:6}, sent {:10.3f} MB in {:8} messages, took {:7.3f} s of processor{}\n",
      options.ranks, options.hosts, options.whole ? ", whole" : "", last.begun, last.met,
      options.whole ? "joined" : "gathered", last.gathered, last.ended, shared.accepted,
      static_cast<double>(shared.bytes) * 1e-6, shared.messages, shared.processor, last.good ? "" : "  FAILED");
}

int run(const Options& options) {
  const std::size_t bytes =
      sizeof(Shared) + (sizeof(Times) + sizeof(SurvivorPlace)) * static_cast<std::size_t>(options.ranks);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* shared = new (memory) Shared{};
  auto* times = reinterpret_cast<Times*>(shared + 1);
  const taccUniqueId id = makeUniqueId();
  shared->start = Clock::now();
  // Where all are on one host, each rank is a process; rank 0 always is.
  std::vector<std::vector<int>> processes;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const bool isFirst = rank == 0 || hostOf(options, rank) != hostOf(options, rank - 1);
    if (options.own || options.hosts == 1 || isFirst || rank == 1) processes.emplace_back();
    processes.back().push_back(rank);
  }
  for (const std::vector<int>& ranks : processes) {
    if (::fork() != 0) continue;
    runProcess(options, id, ranks, *shared, times);
    std::fflush(nullptr);
    ::_exit(0);
  }
  while (::wait(nullptr) > 0) {
  }
  print(options, *shared, times);
  return std::all_of(times, times + options.ranks, [](const Times& one) { return one.good; }) ? 0 : 1;
}

/// This process is one rank.
int runLaunched() {
  const Clock::time_point start = Clock::now();
  taccComm_t comm = nullptr;
  if (taccCommInitEnv(&comm, nullptr) != taccSuccess) {
    fmt::print(stderr, "{}\n", taccGetLastError(nullptr));
    return 1;
  }
  const std::uint64_t bytes = sentBytes, messages = sentMessages, visitors = accepted;
  double longest = since(start);
  int rank = 0, ranks = 0;
  const bool good = taccAllReduce(&longest, &longest, 1, taccDouble, taccMax, comm, nullptr) == taccSuccess &&
                    taccCommUserRank(comm, &rank) == taccSuccess && taccCommCount(comm, &ranks) == taccSuccess;
  const Clock::time_point end = Clock::now();
  const bool left = taccCommDestroy(comm) == taccSuccess;
  if (rank == 0)
    fmt::print(
        "{:6} ranks: the slowest joined in {:.3f} s; rank 0 accepted {}, sent {:.3f} MB in {} messages until "
        "then, and left in {:.3f} s\n",
        ranks, longest, visitors, static_cast<double>(bytes) * 1e-6, messages, since(end));
  return good && left ? 0 : 1;
}

}  // namespace
}  // namespace tacc

int main(int argc, char** argv) {
  tacc::Options options;
  CLI::App app("Measures how ranks meet.");
  app.add_option("--ranks", options.ranks, "how many")->check(CLI::Range(1, 65536));
  app.add_option("--hosts", options.hosts, "that they believe to be on")->check(CLI::Range(1, 65536));
  app.add_option("--bytes", options.bytes, "that each tells all others");
  app.add_option("--width", options.width, "TACC_JOIN_WIDTH")->check(CLI::Range(1, 65536));
  app.add_flag("--whole", options.whole, "form a communicator");
  app.add_flag("--shrink", options.shrink, "survivors meet, as in taccCommShrink");
  app.add_option("--dead", options.dead, "ranks that do not survive, the last ones")->check(CLI::NonNegativeNumber);
  app.add_flag("--processes", options.own, "one for each rank, also on several hosts");
  app.add_flag("--launched", options.launched, "this process is one rank, as its launcher says");
  CLI11_PARSE(app, argc, argv);
  if (options.launched) return tacc::runLaunched();
  return tacc::run(options);
}
