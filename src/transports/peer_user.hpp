// Whose process is at the other end of a unix socket. The kernel says so (SO_PEERCRED), and nobody can pretend.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace tacc {

/// The effective user id of the process at the other end of a connected unix socket: as it was when that process
/// connected, or, seen by who connected, when it called listen(). Nothing where the kernel does not tell. A user who
/// has no number in this process's user namespace reads as the overflow number, 65534.
std::optional<uid_t> userOfPeer(int unixSocket) noexcept;

/// Whether that is this process's own effective user. Root is no exception. False where the kernel does not tell.
bool isSameUser(int unixSocket) noexcept;

/// "a process of user 1001 is at the other end, and this process is of user 1000", for messages.
std::string describeUsers(int unixSocket);

}  // namespace tacc
