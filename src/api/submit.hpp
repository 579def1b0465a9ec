// The way of a call: checked, then run at once in the calling thread, recorded by the open group, or given to its
// stream.
#pragma once

#include "api/boundary.hpp"
#include "api/check.hpp"
#include "api/group.hpp"
#include "api/handles.hpp"
#include "comm/communicator.hpp"
#include "tacc/tacc.h"

namespace tacc {

inline constexpr ArgumentNames usualNames;

/// Any collective: without a group and on the null stream a few branches around Communicator::run: no lock, no
/// allocation. The program's thread is inside `comm`. `call` is as the program made it and is changed by the check.
void submitChecked(const char* function, taccComm& comm, taccStream_t stream, Call& call, const ArgumentNames& names);

/// The body of `collective`. A short call that is like the one before takes less time than its checks, and than its
/// arguments take to be laid into memory.
template <Collective collective>
[[gnu::always_inline]] inline taccResult_t submitCollective(const char* function, const void* send, void* receive,
                                                            std::size_t count, taccDataType_t type, taccRedOp_t op,
                                                            int root, taccComm_t comm, taccStream_t stream,
                                                            const ArgumentNames& names = usualNames) noexcept {
  try {
    const Entry entry(comm);
    if (stream == nullptr && !groupIsOpen() && comm->sequencer.idle()) [[likely]]
      if (Communicator& communicator = *comm->communicator;
          communicator.shortCalls().has(collective, count, type, op, root) &&
          areSafeBuffers<collective>(communicator, send, receive, count, type, root)) {
        communicator.repeat(collective, send, receive);
        return taccSuccess;
      }
    Call call{collective, send, receive, count, type, op, root};
    submitChecked(function, *comm, stream, call, names);
    return taccSuccess;
  } catch (...) {
    return recordExceptionInGroup(function, comm);
  }
}

/// The body of every collective whose blocks have unequal lengths.
taccResult_t submitUnequal(const char* function, taccComm_t comm, taccStream_t stream, Call&& call,
                           const UnequalArguments& arguments) noexcept;

/// The body of send and receive.
taccResult_t submitExchange(const char* function, taccComm_t comm, taccStream_t stream,
                            const PointToPoint& operation) noexcept;

}  // namespace tacc
