#include "api/easgd_handle.hpp"

#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "transports/library_memory.hpp"

namespace tacc {
namespace {

struct Table {
  ForkMutex mutex;
  std::unordered_map<taccEasgd_t, std::shared_ptr<taccEasgd>> sessions;
};

/// Never destroyed, as programs may still call while the process ends.
Table& table() {
  static Table* const made = new Table;
  return *made;
}

using Entries = std::unordered_map<taccEasgd_t, std::shared_ptr<taccEasgd>>;

/// With the table locked.
Entries::iterator findEasgd(taccEasgd_t handle) {
  if (handle == nullptr) fail(taccInvalidArgument, "easgd is NULL");
  const auto found = table().sessions.find(handle);
  if (found == table().sessions.end()) fail(taccInvalidArgument, "easgd is not from taccEasgdCreate, or was destroyed");
  if (found->second->comm().life.load() == Life::inherited) failOnHandle(&found->second->comm());
  return found;
}

}  // namespace

void StreamBackground::start(std::function<void(Communicator&)> calls) {
  if (!stream_) stream_ = std::make_shared<taccStream>();
  Unit unit;
  unit.kind = Unit::Kind::calls;
  unit.function = "the exchange under way";
  unit.calls = std::move(calls);
  unit.ticket = comm_->tickets.take();
  stream_->push({CommReference(comm_.get()), std::move(unit), nullptr});
}

void StreamBackground::wait() {
  if (!stream_) return;
  if (const auto error = stream_->synchronize()) throw Error(*error);
}

LoneCommunicator::LoneCommunicator() : comm_(makeHandle(std::move(Communicator::makeThreads(1, {}).front()))) {}

LoneCommunicator::~LoneCommunicator() {
  comm_->life.store(Life::destroyed);
  freeHandle(*comm_, false);
}

PackedTensors::PackedTensors(std::span<const std::size_t> counts) {
  constexpr std::size_t unit = 64 / sizeof(float);
  constexpr std::size_t most = SIZE_MAX / sizeof(float) / 2;
  for (const std::size_t count : counts) {
    if (count > most - unit || count_ > most - unit - count)
      fail(taccInvalidArgument, "tensor {} has {} elements: all together are more bytes than an address space has",
           offsets_.size(), count);
    offsets_.push_back(count_);
    count_ += (count + unit - 1) / unit * unit;
  }
  weights_ = static_cast<float*>(allocateLibraryMemory(count_ * sizeof(float)));
  try {
    gradients_ = static_cast<float*>(allocateLibraryMemory(count_ * sizeof(float)));
  } catch (...) {
    freeLibraryMemory(weights_);
    throw;
  }
}

PackedTensors::~PackedTensors() {
  freeLibraryMemory(gradients_);
  freeLibraryMemory(weights_);
}

taccEasgd_t keepEasgd(std::shared_ptr<taccEasgd> made) {
  const std::lock_guard lock(table().mutex);
  return table().sessions.emplace(made.get(), made).first->first;
}

std::shared_ptr<taccEasgd> requireEasgd(taccEasgd_t handle) {
  const std::lock_guard lock(table().mutex);
  return findEasgd(handle)->second;
}

std::shared_ptr<taccEasgd> removeEasgd(taccEasgd_t handle) {
  const std::lock_guard lock(table().mutex);
  return std::move(table().sessions.extract(findEasgd(handle)).mapped());
}

}  // namespace tacc

taccEasgd::taccEasgd(taccComm& comm, const tacc::EasgdSettings& settings, float* weights, std::size_t count)
    : comm_(&comm),
      weights_(weights),
      background_(comm),
      session_(*comm.communicator, background_, settings, weights, count) {}

taccEasgd::taccEasgd(std::unique_ptr<tacc::LoneCommunicator> lone, const tacc::EasgdSettings& settings, float* weights,
                     std::size_t count)
    : lone_(std::move(lone)),
      comm_(&lone_->comm()),
      weights_(weights),
      background_(lone_->comm()),
      session_(*comm_->communicator, background_, settings, weights, count) {}

taccEasgd::taccEasgd(taccComm& comm, const tacc::EasgdSettings& settings, std::unique_ptr<tacc::PackedTensors> tensors)
    : comm_(&comm),
      tensors_(std::move(tensors)),
      weights_(tensors_->weights()),
      background_(comm),
      session_(*comm.communicator, background_, settings, weights_, tensors_->count()) {}
