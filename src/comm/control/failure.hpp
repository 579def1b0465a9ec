// An Error on its way to the other ranks.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "comm/bootstrap/channel.hpp"
#include "core/error.hpp"

namespace tacc {

/// describeFailure() of no memory at all, for those who make it before they need it.
Payload describeLackOfMemory();

/// The message that carries an Error.
Payload describeFailure(const Error& error);

/// What another rank says in words, for messages: cut where it is very long, fit for a terminal, never empty.
std::string textFrom(std::span<const std::byte> bytes);

/// The Error that a failure message carries.
Error failureIn(const Message& message);
/// The same for this rank, to which the trouble of another process is taccRemoteError.
Error remoteFailureIn(const Message& message);

}  // namespace tacc
