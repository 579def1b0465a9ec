// What rank 0 tells the others of a job through the store of the launcher: where it is met, and a secret.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/launch/launch_environment.hpp"
#include "core/environment.hpp"
#include "transports/inet_address.hpp"

namespace tacc {

struct LaunchCard {
  std::vector<InetAddress> addresses;  // of rank 0's host with the port there, best first; at most 5
  std::string secret;                  // random, in hexadecimal digits

  /// One word of letters, digits and ".:,;[]/-", below 400 bytes: what all stores take as a value.
  std::string encode() const;
  /// Nothing where encode() did not write it.
  static std::optional<LaunchCard> decode(std::string_view text);
};

/// Fills in where the ranks of `launch` meet and a secret for its key, once per process: rank 0 chooses a port, which
/// it keeps for all communicators of the job, and puts the card into launch.store; the others wait for it there, as
/// long as ranks may take to join. Rank 0's addresses. Any thread. Throws taccSystemError where the store cannot be
/// reached, taccTimeout where rank 0 has put nothing there in time.
std::vector<InetAddress> meetThroughStore(Launch& launch, const Environment& environment);

}  // namespace tacc
