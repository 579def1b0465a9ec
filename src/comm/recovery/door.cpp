#include "comm/recovery/door.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "transports/abstract_address.hpp"
#include "transports/peer_user.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

constexpr std::size_t acceptedAtOnce = 32;  // and all the ranks: each may have come
constexpr double strangerSeconds = 2;       // for a proof, which takes two messages; who is slower calls again
/// So many more than ranks without a proof push out the oldest, so that they cannot use up this process's descriptors.
constexpr std::size_t mostStrangers = 64;
constexpr std::chrono::milliseconds shortagePause(20);

std::string randomName() {
  const Nonce nonce = makeNonce();
  std::string name = "tacc-m-";
  for (std::size_t i = 0; i < 16; ++i) name += fmt::format("{:02x}", nonce[i]);
  return name;
}

FileDescriptor listenUnix(const std::string& name) {
  FileDescriptor socket =
      ownDescriptor([&] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  const AbstractAddress address(name);
  if (!socket.valid() || ::bind(socket.get(), address.get(), address.size()) != 0)
    failDescriptor("cannot make the socket at which survivors meet");
  return socket;
}

bool isStranger(const MeetingLink& visitor) { return visitor.peer() < 0; }

/// The oldest of those who have proven nothing. False: there is none.
bool showOutOldest(std::list<MeetingLink>& visitors) {
  const auto oldest = std::ranges::find_if(visitors, isStranger);
  if (oldest == visitors.end()) return false;
  visitors.erase(oldest);
  return true;
}

}  // namespace

Door::Door(int rank, const InetAddress* address) : refusals_(rank) {
  if (address == nullptr) {
    openUnix(randomName());
  } else {
    // Nobody is told of any other address of this host.
    listener_ = bindTcp(0, *address);
    if (!listener_.valid()) listener_ = bindTcp(0);
    if (!listener_.valid()) failDescriptor("rank {}: cannot bind the port at which survivors meet", rank);
    place_.address = address->v6();
    place_.port = portOf(listener_.get());
  }
  listen(rank);
}

Door::Door(int rank, const std::string& name) : refusals_(rank) {
  openUnix(name);
  listen(rank);
}

void Door::openUnix(const std::string& name) {
  std::ranges::copy(name, place_.name.begin());
  listener_ = listenUnix(name);
}

void Door::listen(int rank) {
  if (::listen(listener_.get(), SOMAXCONN) != 0) failErrno("rank {}: cannot listen for survivors", rank);
}

pollfd Door::descriptor() const noexcept { return {Clock::now() < closedUntil_ ? -1 : listener_.get(), POLLIN, 0}; }

void Door::serve(const MeetingMembers& members, std::list<MeetingLink>& visitors) {
  std::erase_if(visitors, [](const MeetingLink& one) {
    return isStranger(one) && (one.isOver() || one.age() > strangerSeconds);
  });
  if (Clock::now() < closedUntil_) return;
  for (std::size_t i = 0; i < acceptedAtOnce + members.places.size(); ++i) {
    FileDescriptor socket =
        ownDescriptor([&] { return ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
    if (!socket.valid()) {
      if (errno == EAGAIN) return;
      if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) && !showOutOldest(visitors)) {
        shortage_ = errno;
        closedUntil_ = Clock::now() + shortagePause;
        return;
      }
      continue;  // else the one who waited has gone
    }
    if (place_.port != 0) {
      tuneTcp(socket.get());
    } else if (!isSameUser(socket.get())) {
      refusals_.note("a process of this host", false, describeUsers(socket.get()));
      continue;
    }
    visitors.emplace_back(members, std::move(socket));
    if (static_cast<std::size_t>(std::ranges::count_if(visitors, isStranger)) > mostStrangers + members.places.size())
      showOutOldest(visitors);
  }
}

void Door::keepOpen() noexcept { (void)listener_.release(); }

}  // namespace tacc
