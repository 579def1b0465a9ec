#include "api/easgd_handle.hpp"

#include <utility>

#include "api/handle_table.hpp"
#include "core/error.hpp"
#include "transports/shm/library_memory.hpp"

namespace tacc {
namespace {

HandleTable<taccEasgd>& sessions() {
  static auto* const made = new HandleTable<taccEasgd>;
  return *made;
}

}  // namespace

void StreamBackground::start(std::function<void(Communicator&)> calls) {
  if (!stream_) stream_ = std::make_shared<taccStream>();
  Unit unit;
  unit.kind = Unit::Kind::calls;
  unit.function = "the exchange under way";
  unit.calls = std::move(calls);
  unit.turn = comm_->sequencer.take();
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

taccEasgd_t keepEasgd(std::shared_ptr<taccEasgd> made) { return sessions().keep(std::move(made)); }

std::shared_ptr<taccEasgd> requireEasgd(taccEasgd_t handle) {
  if (handle == nullptr) fail(taccInvalidArgument, "easgd is NULL");
  auto found = sessions().find(handle);
  if (!found) fail(taccInvalidArgument, "easgd is not from taccEasgdCreate, or was destroyed");
  if (found->comm().life.load() == Life::inherited) failOnHandle(&found->comm());
  return found;
}

std::shared_ptr<taccEasgd> removeEasgd(taccEasgd_t handle) {
  auto found = requireEasgd(handle);
  sessions().remove(handle);
  return found;
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
