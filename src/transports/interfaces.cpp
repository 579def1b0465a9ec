#include "transports/interfaces.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

/// Beginnings of names that software gives to interfaces which lead to no other host.
constexpr std::array<std::string_view, 14> virtualNames = {"docker", "veth",  "virbr",   "br-",  "lxc",
                                                           "lxdbr",  "cni",   "flannel", "cali", "vnet",
                                                           "podman", "vmnet", "tap",     "ifb"};

enum class InterfaceKind { card, doubtful, loopback, useless };

InterfaceKind kindOf(const InterfaceAddress& one) {
  if (one.address.isLinkLocal() && !one.address.isV4()) return InterfaceKind::useless;
  if (one.address.isLoopback()) return InterfaceKind::loopback;
  const bool isVirtual = std::ranges::any_of(
      virtualNames, [&](std::string_view beginning) { return one.interface.starts_with(beginning); });
  return isVirtual || !one.running || one.address.isLinkLocal() ? InterfaceKind::doubtful : InterfaceKind::card;
}

std::vector<InterfaceAddress> namedAddresses(std::span<const InterfaceAddress> all, std::string_view names) {
  std::vector<InterfaceAddress> chosen;
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
    const std::size_t before = chosen.size();
    for (const InterfaceAddress& one : all) {
      if (one.interface == name && kindOf(one) != InterfaceKind::useless) chosen.push_back(one);
    }
    if (chosen.size() == before) {
      fail(taccInvalidArgument,
           "TACC_SOCKET_IFNAME names \"{}\", which is no interface of this host that is up and has an address; there "
           "are: {}",
           name, describeAddresses(all));
    }
  }
  return chosen;
}

/// Whether errno's `code` is how sandboxes refuse the netlink sockets of getifaddrs().
bool isRefusal(int code) noexcept {
  return code == EAFNOSUPPORT || code == EPROTONOSUPPORT || code == EPERM || code == EACCES || code == ENOSYS;
}

/// As far as can be asked without netlink: those of IPv4. None where that is refused too: ranks of one host need none.
std::vector<InterfaceAddress> addressesWithoutNetlink() {
  std::vector<InterfaceAddress> all;
  const FileDescriptor socket =
      ownDescriptor([] { return ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  std::vector<ifreq> requests(64);
  ifconf list{};
  for (bool isFull = true; isFull;) {  // a list that fills its room may have been cut
    requests.resize(2 * requests.size());
    list.ifc_len = static_cast<int>(requests.size() * sizeof(ifreq));
    list.ifc_req = requests.data();
    if (!socket.valid() || ::ioctl(socket.get(), SIOCGIFCONF, &list) != 0) return all;
    isFull = static_cast<std::size_t>(list.ifc_len) == requests.size() * sizeof(ifreq);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(list.ifc_len) / sizeof(ifreq); ++i) {
    ifreq& one = requests[i];
    const auto address = InetAddress::of(&one.ifr_addr);
    const std::string name(one.ifr_name, ::strnlen(one.ifr_name, sizeof one.ifr_name));
    if (!address || ::ioctl(socket.get(), SIOCGIFFLAGS, &one) != 0 || (one.ifr_flags & IFF_UP) == 0) continue;
    all.push_back({name, *address, (one.ifr_flags & IFF_RUNNING) != 0});
  }
  return all;
}

}  // namespace

std::vector<InterfaceAddress> interfaceAddresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    if (isRefusal(errno)) return addressesWithoutNetlink();
    failDescriptor("cannot list the network interfaces of this host");
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  std::vector<InterfaceAddress> all;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    if (const auto address = InetAddress::of(one->ifa_addr)) {
      all.push_back({one->ifa_name, *address, (one->ifa_flags & IFF_RUNNING) != 0});
    }
  }
  return all;
}

std::vector<InterfaceAddress> chooseAddresses(std::span<const InterfaceAddress> all, std::string_view names) {
  if (!names.empty()) return namedAddresses(all, names);
  std::vector<InterfaceAddress> chosen;
  for (const InterfaceKind kind : {InterfaceKind::card, InterfaceKind::doubtful, InterfaceKind::loopback}) {
    if (kind == InterfaceKind::loopback && !chosen.empty()) break;
    std::ranges::copy_if(all, std::back_inserter(chosen), [&](const auto& one) { return kindOf(one) == kind; });
  }
  return chosen;
}

std::vector<InterfaceAddress> choosePresent(std::span<const InterfaceAddress> all, std::string_view names) {
  if (names.empty()) return chooseAddresses(all, names);
  std::vector<InterfaceAddress> chosen;
  std::optional<Error> first;
  while (!names.empty()) {
    const std::string name = firstInterface(names);
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    try {
      std::ranges::copy(namedAddresses(all, name), std::back_inserter(chosen));
    } catch (const Error& error) {
      if (!first) first = error;
    }
  }
  if (chosen.empty() && first) throw Error(*first);
  return chosen;
}

std::string firstInterface(std::string_view names) { return std::string(names.substr(0, names.find(','))); }

std::string describeAddresses(std::span<const InterfaceAddress> addresses) {
  std::string text;
  for (const InterfaceAddress& one : addresses) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.interface, one.address.host());
  }
  return text.empty() ? "none" : text;
}

std::string interfaceOf(std::span<const InterfaceAddress> all, const InetAddress& address) {
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return one.address.sameHost(address); });
  return found == all.end() ? "" : found->interface;
}

}  // namespace tacc
