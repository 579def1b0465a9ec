#include "comm/bootstrap/listeners.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "comm/bootstrap/connect.hpp"
#include "comm/hosts.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"
#include "transports/interfaces.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/tcp/tcp.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

/// Owns nothing when the name is taken.
FileDescriptor listenUnix(const std::string& name) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) failDescriptor("cannot make the socket at which the other ranks arrive");
  const AbstractAddress address(name);
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

/// The addresses of the interfaces that TACC_SOCKET_IFNAME names, and those of `wanted` that this host has; nothing:
/// all that it has, as no interface is named.
std::vector<InetAddress> restrictAddresses(const std::vector<InetAddress>& wanted) {
  const std::string names = checkEnvironment().interfaces;
  if (names.empty()) return {};
  const std::vector<InterfaceAddress> here = interfaceAddresses();
  std::vector<InetAddress> chosen;
  const auto add = [&](const InetAddress& address) {
    if (std::ranges::none_of(chosen, [&](const auto& one) { return one.sameHost(address); })) chosen.push_back(address);
  };
  for (const InterfaceAddress& one : chooseAddresses(here, names)) add(one.address);
  for (const InetAddress& address : wanted)
    if (!interfaceOf(here, address).empty()) add(address);
  return chosen;
}

/// Listens at `port` (0: one that is free, the same of all) of these addresses, or of all there are when none is given.
/// Nothing when that fails: errno says why.
std::vector<Listener> listenAt(std::uint16_t port, const std::vector<InetAddress>& addresses) {
  std::vector<Listener> listeners;
  const auto open = [&](const std::optional<InetAddress>& only) {
    FileDescriptor socket = bindTcp(port, only);
    if (!socket.valid() || ::listen(socket.get(), SOMAXCONN) != 0) return false;
    if (port == 0) port = portOf(socket.get());
    listeners.push_back({std::move(socket), true});
    return true;
  };
  const bool all = addresses.empty() ? open(std::nullopt)
                                     : std::ranges::all_of(addresses, [&](const auto& one) { return open(one); });
  const int code = errno;
  if (!all) listeners.clear();
  errno = code;
  return listeners;
}

void append(std::vector<Listener>& listeners, std::vector<Listener> more) {
  std::ranges::move(more, std::back_inserter(listeners));
}

std::vector<Listener> listenTcp(const UniqueIdContents& id) {
  std::vector<Listener> listeners = listenAt(id.port, restrictAddresses(addressesIn(id)));
  if (!listeners.empty()) return listeners;
  failDescriptor("rank 0: cannot listen on TCP port {}, where the unique id (of {}) sends the other ranks; {}", id.port,
                 describeAddressesIn(id),
                 isDerived(id)
                     ? "set TACC_RENDEZVOUS=HOST:PORT with a port that is free, the same on every rank"
                     : "make the id on rank 0's host, as the same user, in a process that lives until rank 0 has "
                       "joined (best in rank 0 itself)");
}

/// Who has the name already is another rank 0 of the same user, whom to tell, or somebody who worked the name out.
void checkIsOurs(const std::string& name, const UniqueIdContents& id) {
  const Attempt taken = connectUnix(name);
  if (!taken.isStranger) return;
  fail(taccSystemError, "rank 0: the name of the socket at which the ranks of host {} meet is taken, and {}{}",
       hostName(), taken.problem,
       isDerived(id)
           ? "; set TACC_JOB_SECRET to a random text, the same on every rank, so that other users cannot work "
             "the name out"
           : "");
}

}  // namespace

std::optional<std::vector<Listener>> listenFor(const UniqueIdContents& id) {
  std::vector<Listener> listeners;
  FileDescriptor unixSocket = listenUnix(rendezvousName(id));
  if (!unixSocket.valid()) {
    checkIsOurs(rendezvousName(id), id);
    return std::nullopt;
  }
  listeners.push_back({std::move(unixSocket), false});
  if (id.port != 0) {
    checkIsHere(id);
    append(listeners, listenTcp(id));
  }
  return listeners;
}

std::optional<std::vector<Listener>> listenAsGateway(const std::string& name) {
  std::vector<Listener> listeners;
  FileDescriptor unixSocket = listenUnix(name);
  if (!unixSocket.valid()) return std::nullopt;
  listeners.push_back({std::move(unixSocket), false});
  std::vector<Listener> tcp = listenAt(0, restrictAddresses({}));
  if (tcp.empty()) failDescriptor("cannot listen for ranks of other hosts");
  append(listeners, std::move(tcp));
  return listeners;
}

}  // namespace tacc
