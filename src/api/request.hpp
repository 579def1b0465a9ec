// What a taccRequest_t and a taccEvent_t point to: places in streams, found by their handles in tables, so that a
// handle that is none is never read through.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "api/stream.hpp"
#include "api/work.hpp"
#include "tacc/tacc.h"

/// One call that a stream was given. Used again for another call when the program has destroyed it. From any thread.
struct taccRequest {
 public:
  taccRequest();
  taccRequest(const taccRequest&) = delete;
  taccRequest& operator=(const taccRequest&) = delete;
  ~taccRequest();

  /// Becomes the request for the call that `stream` was given last. Fails where it was given none.
  void open(tacc::StreamPointer stream);
  /// Lets go of the stream.
  void close() noexcept;
  /// As taccStream::finish().
  bool finish(const taccStream::Deadline& deadline);

 private:
  std::mutex mutex_;
  tacc::StreamPointer stream_;
  std::uint64_t number_ = 0;
};

/// A place in a stream that may be set anew. From any thread.
struct taccEvent {
 public:
  taccEvent();

  /// `stream` null: the null stream, whose calls are done when they return.
  void record(const tacc::StreamPointer& stream);
  tacc::StreamPlace place();

 private:
  std::mutex mutex_;
  tacc::StreamPlace place_;
};

namespace tacc {

using RequestPointer = std::shared_ptr<taccRequest>;
using EventPointer = std::shared_ptr<taccEvent>;

/// Allocates nothing where there is a request that was destroyed.
taccRequest_t makeRequest(StreamPointer stream);
/// Fails when the handle is null or none.
RequestPointer requireRequest(taccRequest_t handle);
/// Takes it out of the table.
void destroyRequest(taccRequest_t handle);

taccEvent_t makeEvent();
/// Fails when the handle is null or none, and in a process that was forked from that of the event.
EventPointer requireEvent(taccEvent_t handle);
/// Takes it out of the table.
void destroyEvent(taccEvent_t handle);

}  // namespace tacc
