// The way of a call: checked, then run at once in the calling thread, recorded by the open group, or given to its
// stream.
#pragma once

#include "api/check.hpp"
#include "comm/communicator.hpp"
#include "tacc/tacc.h"

namespace tacc {

inline constexpr ArgumentNames usualNames;

/// The body of every collective. Without a group and on the null stream this is a few branches and one atomic exchange
/// around Communicator::run: no lock, no allocation. `call` is as the program made it and is changed by the check.
taccResult_t submitCollective(const char* function, taccComm_t comm, taccStream_t stream, Call&& call,
                              const ArgumentNames& names = usualNames) noexcept;

/// The body of every collective whose blocks have unequal lengths.
taccResult_t submitUnequal(const char* function, taccComm_t comm, taccStream_t stream, Call&& call,
                           const UnequalArguments& arguments) noexcept;

/// The body of send and receive.
taccResult_t submitExchange(const char* function, taccComm_t comm, taccStream_t stream,
                            const PointToPoint& operation) noexcept;

}  // namespace tacc
