// Attempts to reach a rank at the places where it listens.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/bootstrap/wait.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/inet_address.hpp"

namespace tacc {

struct Attempt {
  FileDescriptor socket;    // connected, unless `problem` says why not
  std::string problem;      // "nobody listens there", "no answer within 0.25 s", or what the kernel says
  bool isBusy = false;      // somebody listens, and too many connect at once
  bool isStranger = false;  // a process of another user listens, and has been told nothing
  bool isRefused = false;   // nobody listens there: that host's kernel says so
};

/// Never waits. Only a process of this process's user is somebody to be connected to. Throws taccSystemError when this
/// process cannot make sockets.
Attempt connectUnix(const std::string& name);

/// Begins a connection over TCP and does not wait. True: it is under way, and finishTcp() is due when its socket can be
/// written to. Else it has failed already, and the attempt says why.
bool beginTcp(const InetAddress& address, Attempt& attempt);
/// The end of it: connected, or not.
void finishTcp(Attempt& attempt);

/// Waits `seconds`, at most until the deadline. Throws also when interrupted.
Attempt connectTcp(const InetAddress& address, double seconds, const Deadline& deadline, const Interrupt& interrupt);
/// The same for several places at the same time; returns when each has answered, or the time is over.
std::vector<Attempt> connectTcp(std::span<const InetAddress> addresses, double seconds, const Deadline& deadline,
                                const Interrupt& interrupt);

}  // namespace tacc
