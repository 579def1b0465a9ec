#include "comm/launch/launch_id.hpp"

#include <netdb.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/hosts.hpp"
#include "comm/launch/launch_card.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "transports/interfaces.hpp"

namespace tacc {
namespace {

/// Adds a text with its length, so that no two lists of texts give the same hash.
class Hash {
 public:
  Hash(std::string_view purpose, std::string_view key) {
    std::array<unsigned char, 32> short32;  // keys of the hash are at most 64 bytes
    ::crypto_generichash(short32.data(), short32.size(), reinterpret_cast<const unsigned char*>(key.data()), key.size(),
                         nullptr, 0);
    ::crypto_generichash_init(&state_, short32.data(), short32.size(), secretBytes);
    add(purpose);
  }
  void add(std::string_view text) {
    const std::uint64_t bytes = text.size();
    ::crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(&bytes), sizeof bytes);
    ::crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  std::array<unsigned char, secretBytes> end() {
    std::array<unsigned char, secretBytes> hash;
    ::crypto_generichash_final(&state_, hash.data(), hash.size());
    return hash;
  }

 private:
  crypto_generichash_state state_;
};

Variables processVariables() {
  Variables variables;
  for (const char* const* entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

/// The process that started all ranks of this host: it made the socket that each has from it, also where a shell stands
/// between; else the parent.
std::string describeManager(const Variables& variables) {
  pid_t manager = ::getppid();
  if (const auto found = variables.find("PMI_FD"); found != variables.end()) {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    const int fd = std::atoi(found->second.c_str());
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid > 0) manager = peer.pid;
  }
  return fmt::format("process manager={}", manager);
}

/// As in a URL, [fd00::2] is an address.
std::string withoutBrackets(const std::string& host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

std::vector<InetAddress> lookUp(const Launch& launch) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int code = ::getaddrinfo(withoutBrackets(launch.meeting.host).c_str(), nullptr, &hints, &first);
  if (code != 0) {
    fail(taccSystemError, "rank {}: the name \"{}\" of rank 0's host (from {}) is not known on host {}: {}",
         launch.rank, launch.meeting.host, launch.meeting.source, hostName(), ::gai_strerror(code));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(first, ::freeaddrinfo);
  std::vector<InetAddress> addresses;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    const auto address = InetAddress::of(one->ai_addr);
    const bool usable = address && (address->isV4() || !address->isLinkLocal());
    if (usable && std::ranges::count(addresses, *address) == 0) addresses.push_back(*address);
  }
  return addresses;
}

bool isOwnName(std::string_view name) {
  const std::string own = hostName();
  const std::string_view shortOwn = std::string_view(own).substr(0, own.find('.'));
  return name == own || name.substr(0, name.find('.')) == shortOwn;
}

struct Numbers {
  std::mutex mutex;
  std::set<unsigned> taken;
};

/// Never destroyed: communicators may be made until the process ends.
Numbers& numbers() {
  static Numbers& only = *new Numbers;
  return only;
}

}  // namespace

std::vector<InetAddress> resolveMeetingPoint(const Launch& launch, std::string_view interfaces) {
  std::vector<InetAddress> addresses = lookUp(launch);
  const bool isLocal = std::ranges::all_of(addresses, [](const auto& address) { return address.isLoopback(); });
  if (!isLocal) {
    std::erase_if(addresses, [](const auto& address) { return address.isLoopback(); });
    return addresses;
  }
  if (launch.spread == Spread::unknown) return addresses;
  if (!isOwnName(launch.meeting.host)) {
    fail(taccInvalidUsage,
         "rank {}: {} names rank 0's host as \"{}\", which on host {} is {}, but the job has ranks on several hosts: "
         "use a name or an address that all of them can reach",
         launch.rank, launch.meeting.source, launch.meeting.host, hostName(),
         addresses.empty() ? "link-local, an address that means something on one link alone"
                           : fmt::format("{} and so this host itself", addresses.front().host()));
  }
  // As Debian writes into /etc/hosts: 127.0.1.1 is the host's own name.
  addresses.clear();
  for (const InterfaceAddress& one : chooseAddresses(interfaceAddresses(), interfaces))
    addresses.push_back(one.address);
  return addresses;
}

taccUniqueId deriveUniqueId(const Launch& launch, std::string_view jobSecret, unsigned sequence,
                            const std::vector<InetAddress>& addresses) {
  const auto derive = [&](std::string_view purpose) {
    Hash hash(purpose, jobSecret);
    hash.add(launch.launcher);
    for (const std::string& part : launch.key) hash.add(part);
    hash.add(
        fmt::format("{} {}:{} {} {}", ::getuid(), launch.meeting.host, launch.meeting.port, launch.ranks, sequence));
    return hash.end();
  };
  UniqueIdContents contents{};
  contents.secret = derive("tacc secret of a job");
  std::ranges::copy_n(derive("tacc name of a job").begin(), contents.name.size(), contents.name.begin());
  if (launch.spread != Spread::oneHost) {
    contents.port = launch.meeting.port;
    setAddresses(contents, addresses);
  }
  return sealUniqueId(contents);
}

LaunchNumber::LaunchNumber() : value_(0) {
  const std::lock_guard<std::mutex> guard(numbers().mutex);
  while (!numbers().taken.insert(value_).second) ++value_;
}

void LaunchNumber::giveBack() noexcept {
  if (isSettled_) return;
  const std::lock_guard<std::mutex> guard(numbers().mutex);
  numbers().taken.erase(value_);
  isSettled_ = true;
}

bool isLaunched() { return isLaunched(processVariables()); }

std::optional<LaunchPlace> placeInJob() {
  const Variables variables = processVariables();
  if (!isLaunched(variables)) return std::nullopt;
  return readPlace(variables);
}

LaunchedRank findLaunch() {
  auto number = std::make_shared<LaunchNumber>();
  const Environment environment = checkEnvironment();
  const Variables variables = processVariables();
  Launch launch = readLaunch(variables, environment.rendezvous);
  if (launch.needsManager) launch.key.push_back(describeManager(variables));
  std::vector<InetAddress> addresses;
  if (launch.store != Store::none)
    addresses = meetThroughStore(launch, environment);
  else if (launch.spread != Spread::oneHost)
    addresses = resolveMeetingPoint(launch, environment.interfaces);
  const taccUniqueId id = deriveUniqueId(launch, environment.jobSecret, number->value(), addresses);
  log(LogLevel::info, launch.rank, "rank {} of {}, as {} says; rank 0 is met at {}", launch.rank, launch.ranks,
      launch.launcher,
      launch.spread == Spread::oneHost ? "the unix socket of this host" : describeAddressesIn(openUniqueId(id)));
  if (launch.rank == 0 && launch.spread != Spread::oneHost && environment.jobSecret.empty() && !launch.isKeySecret)
    log(LogLevel::warn, launch.rank,
        "the secret of this job is derived from what {} says, which others on the network may find out: set "
        "TACC_JOB_SECRET to a random text, the same on every rank, to keep them out",
        launch.launcher);
  return {id, launch.ranks, launch.rank, std::move(number)};
}

}  // namespace tacc
