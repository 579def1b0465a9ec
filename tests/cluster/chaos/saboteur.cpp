#include "chaos/saboteur.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <limits>
#include <string>

namespace tacc::chaos {
namespace {

constexpr double forEver = std::numeric_limits<double>::infinity();
constexpr double shortFault = 0.3 * timeout, longFault = 3 * timeout;  // seconds
constexpr double burst = 0.03;
constexpr int bursts = 20;
constexpr int garbageBytes = 300;

/// A limit that lies a little above what the process has now.
void limit(pid_t process, __rlimit_resource what, rlim_t now) {
  const rlimit value{now, now};
  (void)::prlimit(process, what, &value, nullptr);
}

rlim_t virtualBytesOf(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  rlim_t pages = 0;
  file >> pages;
  return pages * 4096;
}

rlim_t filesOf(pid_t process) {
  rlim_t count = 0;
  for (rlim_t fd = 0; fd < 1024; ++fd)
    if (::access(fmt::format("/proc/{}/fd/{}", process, fd).c_str(), F_OK) == 0) count = fd + 1;
  return count;
}

void talk(int socket, bool isSilent) {
  const std::string garbage(garbageBytes, 'G');
  if (!isSilent) (void)!::send(socket, garbage.data(), garbage.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// Connects to everything that listens on this host, and stays.
void visitAll() {
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      unsigned port = 0, state = 0;
      if (std::sscanf(line.c_str(), " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &port, &state) != 2 || state != 0x0a)
        continue;
      for (int visit = 0; visit < 10; ++visit) {
        const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) talk(socket, visit % 2 == 0);
      }
    }
  }
  std::ifstream file("/proc/self/net/unix");
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find("@tacc");
    if (at == std::string::npos) continue;
    for (int visit = 0; visit < 10; ++visit) {
      const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      const std::string name = line.substr(at + 1);
      std::copy_n(name.begin(), std::min(name.size(), sizeof address.sun_path - 1), address.sun_path + 1);
      const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
      if (::connect(socket, reinterpret_cast<sockaddr*>(&address), length) == 0) talk(socket, visit % 2 == 0);
    }
  }
}

}  // namespace

Saboteur::~Saboteur() {
  for (const Pending& pending : pending_)
    if (pending.host != 0) cluster_.plug(pending.host);
  for (const pid_t stranger : strangers_) {
    ::kill(stranger, SIGKILL);
    ::waitpid(stranger, nullptr, 0);
  }
}

int Saboteur::chooseRank() {
  std::vector<int> candidates;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank)
    if (board_.seats[rank].stage != Stage::over && board_.seats[rank].sabotagedTill < now()) candidates.push_back(rank);
  return candidates.empty() ? -1 : candidates[random_() % candidates.size()];
}

void Saboteur::mark(int rank, double till) {
  auto& marked = board_.seats[rank].sabotagedTill;
  marked = std::max(marked.load(), till);
}

Fault Saboteur::strike() {
  const Fault fault = faults_[random_() % faults_.size()];
  const int rank = chooseRank();
  if (rank < 0) return fault;
  const auto index = static_cast<std::size_t>(rank);
  const pid_t process = ranks_[index];
  const int host = hosts_[index];
  const double start = now();
  const auto markHost = [&](double till) {
    for (std::size_t other = 0; other < hosts_.size(); ++other)
      if (hosts_[other] == host) mark(static_cast<int>(other), till);
  };
  tellEvent(board_, fmt::format("{} of rank {} on host {}", faultNames[static_cast<std::size_t>(fault)], rank, host));
  switch (fault) {
    case Fault::killWithChild:
      board_.seats[rank].wantsChild = true;
      while (board_.seats[rank].wantsChild && now() < start + timeout) ::usleep(1000);
      [[fallthrough]];
    case Fault::kill:
      mark(rank, forEver);
      ::kill(process, SIGKILL);
      break;
    case Fault::stop:
    case Fault::longStop:
      mark(rank, fault == Fault::stop ? start + shortFault : forEver);
      ::kill(process, SIGSTOP);
      pending_.push_back({start + (fault == Fault::stop ? shortFault : longFault), rank, 0, 0});
      break;
    case Fault::unplug:
    case Fault::longUnplug:
      markHost(fault == Fault::unplug ? start + 2 * timeout : forEver);  // what was lost is sent again after a while
      cluster_.unplug(host);
      pending_.push_back({start + (fault == Fault::unplug ? shortFault : longFault), -1, host, 0});
      break;
    case Fault::strangers:
      letStrangersIn(host);
      break;
    case Fault::memory:
      mark(rank, forEver);
      limit(process, RLIMIT_AS, virtualBytesOf(process) + (1U << 16));
      break;
    case Fault::files:
      mark(rank, forEver);
      limit(process, RLIMIT_NOFILE, filesOf(process) + 1);
      break;
    case Fault::slow:
      mark(rank, start + 2 * burst * bursts);
      ::kill(process, SIGSTOP);
      pending_.push_back({start + burst, rank, 0, 2 * bursts});
      break;
  }
  return fault;
}

void Saboteur::attend() {
  const double time = now();
  for (std::size_t i = 0; i < pending_.size();) {
    Pending& one = pending_[i];
    if (one.when > time) {
      ++i;
      continue;
    }
    if (one.bursts == 0) tellEvent(board_, fmt::format("the end of that of rank {}, host {}", one.rank, one.host));
    if (one.host != 0) cluster_.plug(one.host);
    if (one.rank >= 0) ::kill(ranks_[static_cast<std::size_t>(one.rank)], one.bursts % 2 == 0 ? SIGCONT : SIGSTOP);
    if (one.bursts > 0) {
      --one.bursts;
      one.when = time + burst;
      ++i;
    } else {
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

void Saboteur::letStrangersIn(int host) {
  const pid_t child = ::fork();
  if (child != 0) return strangers_.push_back(child);
  test::endAfter([&] {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    cluster_.enter(host);
    visitAll();
    ::pause();
    return 0;
  });
}

}  // namespace tacc::chaos
