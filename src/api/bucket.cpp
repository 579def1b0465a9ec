#include "api/bucket.hpp"

#include <algorithm>
#include <utility>

#include "api/fusion.hpp"
#include "api/handle_table.hpp"
#include "core/error.hpp"
#include "core/types.hpp"

namespace tacc {
namespace {

constexpr std::size_t usualStep = 64 * 1024 * 1024;  // bytes, until the first flush has told
constexpr const char* function = "taccBucketAdd";

HandleTable<taccBucket>& buckets() {
  static auto* const made = new HandleTable<taccBucket>;
  return *made;
}

[[noreturn]] void failOnBucket(taccBucket_t handle) {
  if (handle == nullptr) fail(taccInvalidArgument, "bucket is NULL");
  fail(taccInvalidArgument, "bucket is not a bucket, or was destroyed");
}

}  // namespace

taccBucket_t makeBucket(taccComm& comm, StreamPointer stream, std::size_t bytes) {
  return buckets().keep(std::make_shared<taccBucket>(comm, std::move(stream), bytes));
}

std::shared_ptr<taccBucket> requireBucket(taccBucket_t handle) {
  auto found = buckets().find(handle);
  if (!found) failOnBucket(handle);
  if (found->comm().life.load() == Life::inherited) failOnHandle(&found->comm());
  return found;
}

std::shared_ptr<taccBucket> removeBucket(taccBucket_t handle) {
  auto found = requireBucket(handle);
  buckets().remove(handle);
  return found;
}

}  // namespace tacc

using tacc::sizeOf;
using tacc::Unit;

taccBucket::taccBucket(taccComm& comm, tacc::StreamPointer stream, std::size_t bytes)
    : comm_(&comm), stream_(std::move(stream)), isChosen_(bytes == 0), stepBytes_(tacc::usualStep) {
  sizes_ = isChosen_ ? comm.communicator->bucketSizes(stepBytes_) : tacc::BucketSizes{bytes, bytes};
}

void taccBucket::add(const tacc::Call& call, taccRedOp_t op) {
  Unit unit = Unit::collective(tacc::function, call, op);
  const std::size_t bytes = call.count * sizeOf(call.type);
  addedBytes_ += bytes;
  // What was added before and touches the same memory comes first.
  for (std::size_t i = waiting_.size(); i-- > 0;)
    if (tacc::dependOnEachOther(waiting_[i], call)) launchOpen(i);
  if (bytes >= sizes_.alone) return launch(std::move(unit));
  const auto alike = [&](const Unit& open) { return open.call.type == call.type && open.op == op; };
  auto open = std::ranges::find_if(waiting_, alike);
  if (open != waiting_.end() && open->call.count * sizeOf(call.type) + bytes > sizes_.full) {
    launchOpen(static_cast<std::size_t>(open - waiting_.begin()));
    open = waiting_.end();
  }
  if (open == waiting_.end()) {
    waiting_.push_back(std::move(unit));
    open = std::prev(waiting_.end());
  } else {
    tacc::fuse(*open, unit);
  }
  if (open->call.count * sizeOf(call.type) == sizes_.full)
    launchOpen(static_cast<std::size_t>(open - waiting_.begin()));
}

void taccBucket::flush() {
  while (!waiting_.empty()) launchOpen(0);
  const std::size_t step = std::exchange(addedBytes_, 0);
  // A new size only where the step is another one: choosing takes as long as some calls.
  if (!isChosen_ || step == 0 || (step < 2 * stepBytes_ && stepBytes_ < 2 * step)) return;
  stepBytes_ = step;
  sizes_ = comm_->communicator->bucketSizes(step);
}

void taccBucket::launchOpen(std::size_t index) {
  const auto open = waiting_.begin() + static_cast<std::ptrdiff_t>(index);
  Unit unit = std::move(*open);
  waiting_.erase(open);
  launch(std::move(unit));
}

void taccBucket::launch(Unit unit) {
  if (stream_ == nullptr) {
    comm_->waitForStreams();
    tacc::runUnit(comm_.get(), unit);
    return;
  }
  unit.turn = comm_->sequencer.take();
  stream_->push({tacc::CommReference(comm_.get()), std::move(unit), nullptr});
}
