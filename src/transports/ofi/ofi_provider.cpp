#include "transports/ofi/ofi_provider.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/kept_signals.hpp"
#include "core/loaded_library.hpp"
#include "transports/interfaces.hpp"

namespace tacc {
namespace {

struct InterfaceListDeleter {
  void operator()(ifaddrs* list) const noexcept { ::freeifaddrs(list); }
};
using InterfaceList = std::unique_ptr<ifaddrs, InterfaceListDeleter>;

InterfaceList listInterfaces() {
  ifaddrs* list = nullptr;
  return InterfaceList(::getifaddrs(&list) == 0 ? list : nullptr);
}

bool isSameAddress(const sockaddr& a, const sockaddr& b) {
  if (a.sa_family != b.sa_family) return false;
  if (a.sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
  return a.sa_family == AF_INET6 && std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                                                &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, 16) == 0;
}

const sockaddr* socketAddressOf(const fi_info& info) {
  const bool isSocket =
      info.addr_format == FI_SOCKADDR || info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6;
  return isSocket && info.src_addr != nullptr ? static_cast<const sockaddr*>(info.src_addr) : nullptr;
}

/// A provider calls its domain as the interface (tcp), or as the card that has the interface's address (verbs).
bool isOnInterface(const fi_info& info, const std::string& interface, const ifaddrs* interfaces) {
  if (info.domain_attr->name != nullptr && interface == info.domain_attr->name) return true;
  const sockaddr* own = socketAddressOf(info);
  for (const ifaddrs* entry = interfaces; own != nullptr && entry != nullptr; entry = entry->ifa_next)
    if (entry->ifa_addr != nullptr && interface == entry->ifa_name && isSameAddress(*own, *entry->ifa_addr))
      return true;
  return false;
}

bool isLoopback(const fi_info& info) {
  const sockaddr* own = socketAddressOf(info);
  if (own == nullptr) return false;
  if (own->sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(own)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(own)->sin6_addr);
}

bool isLinkLocal(const fi_info& info) {
  const sockaddr* own = socketAddressOf(info);
  return own != nullptr && own->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(own)->sin6_addr);
}

constexpr int unfit = -1;

/// 0 is best. What drives a network card stays in libfabric's own order, before sockets. Shared memory reaches no other
/// host; udp and sockets are slow, and exist for libfabric's developers. TCP with tags of its own (`net` in 1.17, `tcp`
/// later) comes before TCP under ofi_rxm, which is slower for short messages and whose handling of a broken connection
/// may end the process (docs/understand/transports.md).
int gradeOf(const fi_info& info, bool userChose) {
  const std::string_view provider = info.fabric_attr->prov_name;
  if (provider.starts_with("shm") || isLinkLocal(info)) return unfit;
  int grade = 0;
  if (provider.starts_with("udp") || provider.starts_with("sockets"))
    grade = userChose ? 0 : unfit;
  else if (goesOverTcp(info))
    grade = provider.find("ofi_rxm") == std::string_view::npos ? 1 : 2;
  if (grade == unfit) return unfit;
  const sockaddr* own = socketAddressOf(info);
  return grade * 4 + (isLoopback(info) ? 100 : 0) + (own != nullptr && own->sa_family == AF_INET6 ? 2 : 0);
}

OfiInfo findAll() {
  const OfiInfo hints(ofi().dupinfo(nullptr));
  hints->caps = FI_TAGGED;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  // A rank that waits calls progress(): there are to be no threads of libfabric.
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->av_type = FI_AV_TABLE;
  fi_info* found = nullptr;
  const int result = ofi().getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, hints.get(), &found);
  if (result != 0 && result != -FI_ENODATA)
    fail(taccSystemError, "libfabric cannot start: {}", ofi().strerror(-result));
  return OfiInfo(found);
}

/// Those that fit, best first; pointers into `all`.
std::vector<const fi_info*> sortProviders(const fi_info* all, const std::string& interface) {
  const bool userChose = std::getenv("FI_PROVIDER") != nullptr;
  const InterfaceList interfaces = listInterfaces();
  std::vector<const fi_info*> fitting;
  for (const fi_info* info = all; info != nullptr; info = info->next) {
    if (gradeOf(*info, userChose) == unfit) continue;
    if (interface.empty() || isOnInterface(*info, interface, interfaces.get())) fitting.push_back(info);
  }
  std::stable_sort(fitting.begin(), fitting.end(), [userChose](const fi_info* a, const fi_info* b) {
    return gradeOf(*a, userChose) < gradeOf(*b, userChose);
  });
  return fitting;
}

// Structures grow from version to version, and a library keeps the functions for the older ones. With headers from 1.20
// on it is the newest that fits.
constexpr bool isOld = FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 20;
constexpr const char* infoVersion = isOld ? "FABRIC_1.3" : nullptr;
constexpr const char* fabricVersion = isOld ? "FABRIC_1.1" : nullptr;

OfiLibrary loadOfi() {
  const KeptSignals kept;  // libpsm2, which libfabric brings in, takes them
  const LoadedLibrary library("libfabric.so.1", "Debian's libfabric1 has it");
  OfiLibrary functions{};
  library.find(functions.getinfo, "fi_getinfo", infoVersion);
  library.find(functions.freeinfo, "fi_freeinfo", infoVersion);
  library.find(functions.dupinfo, "fi_dupinfo", infoVersion);
  library.find(functions.fabric, "fi_fabric", fabricVersion);
  library.find(functions.strerror, "fi_strerror");
  library.find(functions.version, "fi_version");
  return functions;
}

}  // namespace

bool goesOverTcp(const fi_info& info) {
  const std::string_view provider = info.fabric_attr->prov_name;
  return provider.starts_with("net") || provider.starts_with("tcp");
}

OfiInfo chooseOfiProvider(const NetworkOptions& options) {
  const OfiInfo all = findAll();
  const std::string interface = firstInterface(options.interfaces);
  const std::vector<const fi_info*> fitting = sortProviders(all.get(), interface);
  if (fitting.empty()) {
    fail(taccSystemError,
         "rank {}: libfabric {} has no provider for tagged messages between hosts{}{}; fi_info -t FI_EP_RDM -c "
         "FI_TAGGED "
         "shows what it finds here",
         options.rank, ofiVersion(), interface.empty() ? "" : " on network interface ", interface);
  }
  return OfiInfo(ofi().dupinfo(fitting.front()));
}

std::string providerNameOf(const fi_info& info) {
  return fmt::format("{} on {}", info.fabric_attr->prov_name,
                     info.domain_attr->name == nullptr ? "its only device" : info.domain_attr->name);
}

std::string listOfiProviders() {
  const OfiInfo all = findAll();
  std::string list;
  for (const fi_info* info : sortProviders(all.get(), {})) {
    const std::string name = providerNameOf(*info);
    if (list.find(name) == std::string::npos) list += (list.empty() ? "" : ", ") + name;
  }
  return list;
}

std::string ofiVersion() { return fmt::format("{}.{}", FI_MAJOR(ofi().version()), FI_MINOR(ofi().version())); }

const OfiLibrary& ofi() {
  static const OfiLibrary functions = loadOfi();
  return functions;
}

}  // namespace tacc
