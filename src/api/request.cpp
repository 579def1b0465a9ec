#include "api/request.hpp"

#include <deque>
#include <unordered_map>
#include <utility>

#include "api/handle_table.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"

namespace tacc {
namespace {

/// Never destroyed, as programs may still call while the process ends.
class RequestTable {
 public:
  static RequestTable& instance() {
    static RequestTable* const table = new RequestTable;
    return *table;
  }

  taccRequest_t keep(StreamPointer stream) {
    const std::lock_guard lock(mutex_);
    // Another thread may still be in a call on one that was destroyed.
    if (!spare_.empty() && spare_.front().mapped().use_count() == 1) {
      spare_.front().mapped()->open(std::move(stream));
      return open_.insert(takeSpare()).position->first;
    }
    auto request = std::make_shared<taccRequest>();
    request->open(std::move(stream));
    return open_.emplace(request.get(), request).first->first;
  }
  RequestPointer find(taccRequest_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(handle);
    return found == open_.end() ? nullptr : found->second;
  }
  /// False where it is no handle.
  bool remove(taccRequest_t handle) {
    const std::lock_guard lock(mutex_);
    Requests::node_type node = open_.extract(handle);
    if (node.empty()) return false;
    node.mapped()->close();
    spare_.push_back(std::move(node));
    return true;
  }

 private:
  using Requests = std::unordered_map<taccRequest_t, RequestPointer>;

  Requests::node_type takeSpare() {
    Requests::node_type node = std::move(spare_.front());
    spare_.pop_front();
    return node;
  }

  ForkMutex mutex_;
  Requests open_;
  std::deque<Requests::node_type> spare_;  // used again as late as possible
};

HandleTable<taccEvent>& eventTable() {
  static auto* const table = new HandleTable<taccEvent>;
  return *table;
}

[[noreturn]] void failOnRequest(taccRequest_t handle) {
  if (handle == nullptr) fail(taccInvalidArgument, "request is NULL; it must come from taccStreamRequest");
  fail(taccInvalidArgument, "request {} is not a request, or has been destroyed; it must come from taccStreamRequest",
       static_cast<const void*>(handle));
}

}  // namespace

taccRequest_t makeRequest(StreamPointer stream) { return RequestTable::instance().keep(std::move(stream)); }

RequestPointer requireRequest(taccRequest_t handle) {
  RequestPointer found = handle == nullptr ? nullptr : RequestTable::instance().find(handle);
  if (!found) failOnRequest(handle);
  return found;
}

void destroyRequest(taccRequest_t handle) {
  if (handle == nullptr || !RequestTable::instance().remove(handle)) failOnRequest(handle);
}

taccEvent_t makeEvent() { return eventTable().keep(std::make_shared<taccEvent>()); }

EventPointer requireEvent(taccEvent_t handle) {
  if (handle == nullptr) fail(taccInvalidArgument, "event is NULL; it must come from taccEventCreate");
  EventPointer found = eventTable().find(handle);
  if (!found)
    fail(taccInvalidArgument, "event {} is not an event, or has been destroyed; it must come from taccEventCreate",
         static_cast<const void*>(handle));
  return found;
}

void destroyEvent(taccEvent_t handle) {
  requireEvent(handle);
  eventTable().remove(handle);
}

}  // namespace tacc

taccRequest::taccRequest() = default;
taccRequest::~taccRequest() { close(); }

void taccRequest::open(tacc::StreamPointer stream) {
  const std::uint64_t number = stream->open();
  const std::lock_guard lock(mutex_);
  stream_ = std::move(stream);
  number_ = number;
}

void taccRequest::close() noexcept {
  tacc::StreamPointer stream;  // goes without the lock
  const std::lock_guard lock(mutex_);
  stream = std::exchange(stream_, nullptr);
  if (stream != nullptr && stream->generation() == tacc::processGeneration()) stream->close();
}

bool taccRequest::finish(const taccStream::Deadline& deadline) {
  tacc::StreamPointer stream;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    stream = stream_;
    number = number_;
  }
  if (stream == nullptr) tacc::fail(taccInvalidArgument, "the request was destroyed by another thread meanwhile");
  tacc::checkIsOwn(*stream);
  return stream->finish(number, deadline);
}

taccEvent::taccEvent() = default;

void taccEvent::record(const tacc::StreamPointer& stream) {
  tacc::StreamPlace place;
  if (stream != nullptr) place = {stream, stream->lastGiven()};
  const std::lock_guard lock(mutex_);
  place_ = std::move(place);
}

tacc::StreamPlace taccEvent::place() {
  const std::lock_guard lock(mutex_);
  if (place_.stream != nullptr) tacc::checkIsOwn(*place_.stream);
  return place_;
}
