// libfabric as it is loaded, and which of its providers and interfaces tacc uses. FI_PROVIDER and the interface of the
// options decide first.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <memory>
#include <string>

#include "transports/network_transport.hpp"

namespace tacc {

/// The functions of libfabric, which is loaded at their first use. The rest of its interface is in its headers alone.
struct OfiLibrary {
  decltype(&::fi_getinfo) getinfo;
  decltype(&::fi_freeinfo) freeinfo;
  decltype(&::fi_dupinfo) dupinfo;
  decltype(&::fi_fabric) fabric;
  decltype(&::fi_strerror) strerror;
  decltype(&::fi_version) version;
};

/// Throws taccSystemError where it cannot be loaded.
const OfiLibrary& ofi();

struct OfiInfoDeleter {
  void operator()(fi_info* info) const noexcept { ofi().freeinfo(info); }
};
using OfiInfo = std::unique_ptr<fi_info, OfiInfoDeleter>;

/// The best way to other hosts: reliable datagrams with tags. Throws taccSystemError when there is none.
OfiInfo chooseOfiProvider(const NetworkOptions& options);

/// No network card: the kernel's TCP under libfabric.
bool goesOverTcp(const fi_info& info);

/// "net on eth0": of a provider that was chosen.
std::string providerNameOf(const fi_info& info);

/// All that chooseOfiProvider chooses from here, best first.
std::string listOfiProviders();

/// "1.17"
std::string ofiVersion();

}  // namespace tacc
