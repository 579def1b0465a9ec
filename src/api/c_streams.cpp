// The C functions of streams, groups, requests and events.
#include <chrono>
#include <cmath>

#include "api/boundary.hpp"
#include "api/check.hpp"
#include "api/group.hpp"
#include "api/request.hpp"
#include "api/stream.hpp"
#include "core/error.hpp"

using tacc::guard;

namespace {

using Clock = std::chrono::steady_clock;

/// Waits that are longer than this have no end: a point in time so far away would not fit.
constexpr double longestWait = 1e8;

taccResult_t finish(const char* function, taccRequest_t request, const taccStream::Deadline& deadline) noexcept {
  bool isDone = true;
  const taccResult_t result =
      guard(function, nullptr, [&] { isDone = tacc::requireRequest(request)->finish(deadline); });
  return isDone ? result : taccInProgress;
}

}  // namespace

taccResult_t taccStreamCreate(taccStream_t* stream) {
  return guard("taccStreamCreate", nullptr, [&] {
    tacc::checkPointer(stream, "stream");
    *stream = tacc::makeStream();
  });
}

taccResult_t taccStreamDestroy(taccStream_t stream) {
  return guard("taccStreamDestroy", nullptr, [&] {
    tacc::checkNotInGroup(tacc::requireStream(stream));
    const tacc::StreamPointer removed = tacc::removeStream(stream);
    removed->stop();
    if (const auto error = removed->synchronize()) throw tacc::Error(*error);
  });
}

taccResult_t taccStreamQuery(taccStream_t stream) {
  bool idle = false;
  const taccResult_t result = guard("taccStreamQuery", nullptr, [&] {
    const tacc::StreamPointer found = tacc::requireStream(stream);
    idle = found->idle();
    if (!idle) return;
    if (const auto error = found->error()) throw tacc::Error(*error);
  });
  return result == taccSuccess && !idle ? taccInProgress : result;
}

taccResult_t taccStreamSynchronize(taccStream_t stream) {
  return guard("taccStreamSynchronize", nullptr, [&] {
    if (const auto error = tacc::requireStream(stream)->synchronize()) throw tacc::Error(*error);
  });
}

taccResult_t taccGroupStart() {
  tacc::startGroup();
  return taccSuccess;
}

taccResult_t taccGroupEnd() {
  return guard("taccGroupEnd", nullptr, [] { tacc::endGroup(); });
}

taccResult_t taccStreamRequest(taccStream_t stream, taccRequest_t* request) {
  return guard("taccStreamRequest", nullptr, [&] {
    tacc::checkPointer(request, "request");
    tacc::StreamPointer found = tacc::requireStream(stream);
    tacc::checkNotInGroup(found);
    *request = tacc::makeRequest(std::move(found));
  });
}

taccResult_t taccRequestTest(taccRequest_t request) { return finish("taccRequestTest", request, taccStream::past); }

taccResult_t taccRequestWait(taccRequest_t request) { return finish("taccRequestWait", request, std::nullopt); }

taccResult_t taccRequestWaitFor(taccRequest_t request, double seconds) {
  constexpr const char* function = "taccRequestWaitFor";
  if (std::isnan(seconds) || seconds < 0) {
    return guard(function, nullptr,
                 [&] { tacc::fail(taccInvalidArgument, "seconds is {}; it must be at least 0", seconds); });
  }
  if (seconds > longestWait) return finish(function, request, std::nullopt);
  const std::chrono::duration<double> span(seconds);
  return finish(function, request, Clock::now() + std::chrono::duration_cast<Clock::duration>(span));
}

taccResult_t taccRequestDestroy(taccRequest_t request) {
  return guard("taccRequestDestroy", nullptr, [&] { tacc::destroyRequest(request); });
}

taccResult_t taccEventCreate(taccEvent_t* event) {
  return guard("taccEventCreate", nullptr, [&] {
    tacc::checkPointer(event, "event");
    *event = tacc::makeEvent();
  });
}

taccResult_t taccEventRecord(taccEvent_t event, taccStream_t stream) {
  return guard("taccEventRecord", nullptr, [&] {
    const tacc::EventPointer found = tacc::requireEvent(event);
    const tacc::StreamPointer recorded = tacc::findStream(stream);
    if (recorded != nullptr) tacc::checkNotInGroup(recorded);
    found->record(recorded);
  });
}

taccResult_t taccEventQuery(taccEvent_t event) {
  bool isReached = true;
  const taccResult_t result = guard("taccEventQuery", nullptr, [&] {
    const tacc::StreamPlace place = tacc::requireEvent(event)->place();
    isReached = place.stream == nullptr || place.stream->isDone(place.number);
  });
  return isReached ? result : taccInProgress;
}

taccResult_t taccEventSynchronize(taccEvent_t event) {
  return guard("taccEventSynchronize", nullptr, [&] {
    const tacc::StreamPlace place = tacc::requireEvent(event)->place();
    if (place.stream != nullptr) place.stream->waitFor(place.number);
  });
}

taccResult_t taccEventDestroy(taccEvent_t event) {
  return guard("taccEventDestroy", nullptr, [&] { tacc::destroyEvent(event); });
}

taccResult_t taccStreamWaitEvent(taccStream_t stream, taccEvent_t event) {
  return guard("taccStreamWaitEvent", nullptr, [&] {
    const tacc::StreamPointer waiting = tacc::findStream(stream);
    tacc::StreamPlace place = tacc::requireEvent(event)->place();
    if (place.stream == nullptr || place.stream == waiting || place.stream->isDone(place.number)) return;
    if (waiting == nullptr) return place.stream->waitFor(place.number);
    tacc::Work work;
    work.after = std::move(place);
    waiting->push(std::move(work));
  });
}
