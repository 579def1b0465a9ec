// Groups: the calls that one thread makes between taccGroupStart and the outermost taccGroupEnd, and how they run.
//
// Within one communicator the collectives run in the order of the calls, small allreduces that follow each other fused
// (see fusion.hpp); then all sends and receives together. So a rank that calls a collective and then a send meets a
// rank that calls the receive first. What runs as one does not depend on the streams, which every rank chooses by
// itself: it runs on the stream of its first call, between two gates of each other stream. Communicators run at the
// same time, those on one stream too. Null-stream calls run in taccGroupEnd, the first communicator's in its thread,
// the others' in temporary threads, since one thread may hold several ranks of a communicator. Communicators that are
// made in a group come to be all or not at all.
#pragma once

#include <memory>

#include "api/stream.hpp"
#include "api/work.hpp"
#include "core/error.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// Open groups of this thread. The model that finds the variable at a fixed offset keeps the check of every call cheap.
extern constinit thread_local int groupDepth [[gnu::tls_model("initial-exec")]];

inline bool groupIsOpen() noexcept { return groupDepth > 0; }

void startGroup() noexcept;
/// Ends one level; the outermost runs what was recorded and throws the first error.
void endGroup();

/// Makes the outermost end of the open group fail with this error, unless it fails already. `isLoss`: for a reason of
/// this process, so that no rank must wait for what the group has recorded.
void failGroupWith(const Error& error, bool isLoss) noexcept;

/// Records a checked call. `stream` null: the null stream.
void recordUnit(taccComm& comm, StreamPointer stream, Unit unit);
/// Records the making of a communicator, by a split of `parent` or, without one, by joining.
void recordCreation(taccComm* parent, const char* function, std::unique_ptr<Creation> creation);

/// Fails while this thread has an open group.
void checkNoGroup();

/// Fail when the open group has recorded calls that need it.
void checkNotInGroup(const taccComm& comm);
void checkNotInGroup(const StreamPointer& stream);

}  // namespace tacc
