// Which host this is, and whether process numbers of another process mean anything here.
#pragma once

#include <cstdint>
#include <string>

namespace tacc {

/// Equal on all processes of a running host, also in its containers; 0 where the kernel does not tell. Throws
/// taccSystemError where this process has no descriptor left to ask. Two hosts that share a kernel (containers with
/// networks of their own) have the same.
std::uint64_t hostHash();

/// Equal on processes that see the same process numbers; 0: unknown.
std::uint64_t processSpaceHash();

/// As uname tells; "?" where it does not.
std::string hostName();

}  // namespace tacc
