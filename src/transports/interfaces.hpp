// The addresses of this host's network interfaces, and which of them other hosts are told.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports/inet_address.hpp"

namespace tacc {

struct InterfaceAddress {
  std::string interface;
  InetAddress address;  // port 0
  bool running = true;  // has a carrier
};

/// All addresses of interfaces that are up, in the kernel's order. Throws taccSystemError.
std::vector<InterfaceAddress> interfaceAddresses();

/// Those of `all` at which other hosts may reach this one, best first. `names` is empty or a list of interfaces with
/// commas between: then exactly the addresses of these, in this order. Else first the interfaces that look like network
/// cards; then those of bridges and virtual machines and the ones without a carrier; loopback only if there is nothing
/// else. Never link-local ones of version 6, which need an interface's number with them. Throws taccInvalidArgument for
/// an interface that does not exist.
std::vector<InterfaceAddress> chooseAddresses(std::span<const InterfaceAddress> all, std::string_view names);

/// The same of names of which this host may lack some, which other hosts have. Throws where it lacks all.
std::vector<InterfaceAddress> choosePresent(std::span<const InterfaceAddress> all, std::string_view names);

/// The first of a list with commas between: for transports that use one.
std::string firstInterface(std::string_view names);

/// "eth0 192.0.2.2, eth0 fd00::2, lo 127.0.0.1", for messages.
std::string describeAddresses(std::span<const InterfaceAddress> addresses);

/// Name of the interface that has this address, whatever its port; "" if none has.
std::string interfaceOf(std::span<const InterfaceAddress> all, const InetAddress& address);

}  // namespace tacc
