// The kinds of network transports, in the order of preference. What this build lacks is listed too.
#include "transports/mpi/plugin_transport.hpp"
#include "transports/network_transport.hpp"
#include "transports/tcp/tcp_transport.hpp"
#if defined(TACC_HAS_OFI)
#include "transports/ofi/ofi_transport.hpp"
#endif
#if defined(TACC_HAS_UCX)
#include "transports/ucx/ucx_transport.hpp"
#endif

namespace tacc {
namespace {

constexpr NetworkTransportKind kinds[] = {
    {"ucx", "UCX: InfiniBand, RoCE, and TCP where there is nothing better.", "libucx-dev",
#if defined(TACC_HAS_UCX)
     makeUcxTransport, describeUcx
#else
     nullptr, nullptr
#endif
    },
    {"ofi", "libfabric: InfiniBand, Omni-Path, Slingshot, EFA, and TCP where there is nothing better.", "libfabric-dev",
#if defined(TACC_HAS_OFI)
     makeOfiTransport, describeOfi
#else
     nullptr, nullptr
#endif
    },
    {"tcp", "TCP by tacc itself: where there is no better network.", "", makeTcpTransport, describeTcp},
    {"mpi", "The MPI of the program that uses tacc, where the program hands it over.", "", makePluginTransport,
     describePlugin},
};

}  // namespace

std::span<const NetworkTransportKind> networkTransports() { return kinds; }

}  // namespace tacc
