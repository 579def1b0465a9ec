// Which provider and interface of libfabric tacc uses. FI_PROVIDER and the interface of the options decide first.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <string>

#include "transports/network_transport.hpp"
#include "transports/ofi/ofi_library.hpp"

namespace tacc {

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
