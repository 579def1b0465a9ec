#include "comm/listeners.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "comm/host.hpp"
#include "comm/rendezvous_address.hpp"
#include "transports/interfaces.hpp"
#include "transports/tcp.hpp"

namespace tacc {
namespace {

/// Owns nothing when the name is taken.
FileDescriptor listenUnix(const std::string& name) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) failErrno("no unix socket");
  const RendezvousAddress address(name);
  if (::bind(socket.get(), address.get(), address.size()) != 0) {
    if (errno == EADDRINUSE) return FileDescriptor();
    failErrno("cannot listen for the other ranks");
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) failErrno("cannot listen for the other ranks");
  return socket;
}

/// An id that was derived from a launcher's environment, not made by taccGetUniqueId.
bool isDerived(const UniqueIdContents& id) { return id.host == 0; }

/// The others would look for rank 0 elsewhere.
void checkIsHere(const UniqueIdContents& id) {
  const std::vector<InterfaceAddress> here = interfaceAddresses();
  for (const InetAddress& address : addressesIn(id)) {
    if (!interfaceOf(here, address).empty()) return;
  }
  fail(taccInvalidUsage,
       "rank 0: the unique id names {} as the address of rank 0's host, and this host ({}) has none of these (it has "
       "{}): {}",
       describeAddressesIn(id), hostName(), describeAddresses(here),
       isDerived(id) ? "the launcher's address, or TACC_RENDEZVOUS, must be of the host where rank 0 runs"
                     : "make the id on the host where rank 0 runs");
}

FileDescriptor listenTcp(const UniqueIdContents& id) {
  FileDescriptor socket = bindTcp(id.port);
  if (socket.valid() && ::listen(socket.get(), SOMAXCONN) == 0) return socket;
  failErrno("rank 0: cannot listen on TCP port {}, where the unique id (of {}) sends the other ranks; {}", id.port,
            describeAddressesIn(id),
            isDerived(id) ? "set TACC_RENDEZVOUS=HOST:PORT with a port that is free, the same on every rank"
                          : "make the id on rank 0's host, as the same user, in a process that lives until rank 0 has "
                            "joined (best in rank 0 itself)");
}

}  // namespace

std::optional<std::vector<Listener>> listenFor(const UniqueIdContents& id) {
  std::vector<Listener> listeners;
  FileDescriptor unixSocket = listenUnix(rendezvousName(id));
  if (!unixSocket.valid()) return std::nullopt;
  listeners.push_back({std::move(unixSocket), false});
  if (id.port != 0) {
    checkIsHere(id);
    listeners.push_back({listenTcp(id), true});
  }
  return listeners;
}

std::optional<std::vector<Listener>> listenAsGateway(const std::string& name) {
  std::vector<Listener> listeners;
  FileDescriptor unixSocket = listenUnix(name);
  if (!unixSocket.valid()) return std::nullopt;
  listeners.push_back({std::move(unixSocket), false});
  FileDescriptor tcp = bindTcp(0);
  if (!tcp.valid() || ::listen(tcp.get(), SOMAXCONN) != 0) failErrno("cannot listen for ranks of other hosts");
  listeners.push_back({std::move(tcp), true});
  return listeners;
}

Visitor acceptVisitor(const Listener& listener) {
  Visitor visitor{FileDescriptor(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)), ""};
  if (!visitor.socket.valid()) return visitor;
  if (listener.isTcp) {
    tuneTcp(visitor.socket.get());
    const auto peer = InetAddress::ofPeer(visitor.socket.get());
    visitor.from = peer ? peer->text() : "an unknown address";
  } else {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    const bool known = ::getsockopt(visitor.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid != 0;
    visitor.from = known ? fmt::format("process {} of this host", peer.pid) : "a process of this host";
  }
  return visitor;
}

}  // namespace tacc
