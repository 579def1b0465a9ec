// The transports between hosts. The words of TACC_TRANSPORT, the registry of transports and the order in which they are
// tried all follow from this table.
#pragma once

// clang-format off
/// row(NAME, FUNCTIONS, IS_BUILT, OVER_TCP, KEEPS_PORTS, PACKAGE, SUMMARY) for every transport, in the order of preference where hosts
/// have network cards:
///   NAME      its word in TACC_TRANSPORT
///   FUNCTIONS makeFUNCTIONSTransport() and describeFUNCTIONS() are its (transports/transport_functions.hpp)
///   IS_BUILT  whether this build has it
///   OVER_TCP  the place in which it is tried where no host has a card: tacc's own is first, as the libraries are slower over TCP
///             and do not survive the death of a peer
///   KEEPS_PORTS whether it listens at ports of TACC_PORT_RANGE alone, or at none; the others' libraries choose ports themselves
///   PACKAGE   what the build needs for it, as its Debian package is called; "": nothing
///   SUMMARY   one sentence
/// A user of the table expands what it needs of a row, so that core names nothing of the layers above.
#define TACC_TRANSPORTS(row) \
  row(ucx, Ucx, TACC_HAS_UCX, 3, false, "libucx-dev", "UCX: InfiniBand, RoCE, and TCP where there is nothing better.") \
  row(ofi, Ofi, TACC_HAS_OFI, 2, false, "libfabric-dev", \
      "libfabric: InfiniBand, Omni-Path, Slingshot, EFA, and TCP where there is nothing better.") \
  row(tcp, Tcp, true, 1, true, "", "TCP by tacc itself: where there is no better network.") \
  row(mpi, Mpi, true, 4, true, "", "The MPI of the program that uses tacc, where the program hands it over.")
// clang-format on
