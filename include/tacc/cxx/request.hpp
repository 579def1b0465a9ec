/* Requests and events. Part of tacc/tacc.hpp. */
#ifndef TACC_CXX_REQUEST_HPP
#define TACC_CXX_REQUEST_HPP

#include <chrono>
#include <utility>

#include "tacc/cxx/error.hpp"
#include "tacc/cxx/stream.hpp"

namespace taccxx {

/// One call that was given to a stream. Its end does not end the call.
class Request {
 public:
  /// For the call that `stream` was given last.
  explicit Request(const Stream& stream) { check(taccStreamRequest(stream, &request_)); }
  /// Takes what `other` has.
  Request(Request&& other) noexcept : request_(std::exchange(other.request_, nullptr)) {}
  /// Exchanges what both have.
  Request& operator=(Request&& other) noexcept {
    std::swap(request_, other.request_);
    return *this;
  }
  ~Request() {
    if (request_ != nullptr) static_cast<void>(taccRequestDestroy(request_));
  }

  /// The handle of the C interface.
  taccRequest_t get() const noexcept { return request_; }

  /// Whether the call is done. Throws its error.
  bool isDone() const { return isDone(taccRequestTest(request_)); }
  /// Waits for the call, and throws its error.
  void wait() const { check(taccRequestWait(request_)); }
  /// Waits so long at most. Whether the call is done; throws its error.
  bool waitFor(std::chrono::duration<double> time) const { return isDone(taccRequestWaitFor(request_, time.count())); }

 private:
  static bool isDone(taccResult_t result) {
    if (result == taccInProgress) return false;
    check(result);
    return true;
  }
  taccRequest_t request_ = nullptr;
};

/// A place in a stream.
class Event {
 public:
  /// Counts as reached until it is recorded.
  Event() { check(taccEventCreate(&event_)); }
  /// Behind all that `stream` has been given.
  explicit Event(const Stream& stream) : Event() { record(stream); }
  /// Takes what `other` has.
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  /// Exchanges what both have.
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_ != nullptr) static_cast<void>(taccEventDestroy(event_));
  }

  /// The handle of the C interface.
  taccEvent_t get() const noexcept { return event_; }

  /// From now on the place behind all that `stream` has been given.
  void record(const Stream& stream) { check(taccEventRecord(event_, stream)); }
  /// Whether all before it has ended.
  bool isReached() const {
    const taccResult_t result = taccEventQuery(event_);
    if (result == taccInProgress) return false;
    check(result);
    return true;
  }
  /// Waits until it is reached.
  void synchronize() const { check(taccEventSynchronize(event_)); }
  /// What `stream` is given from now on begins when this is reached.
  void holdBack(const Stream& stream) const { check(taccStreamWaitEvent(stream, event_)); }

 private:
  taccEvent_t event_ = nullptr;
};

}  // namespace taccxx

#endif
