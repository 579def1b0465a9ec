#include "fake_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/error.hpp"
#include "core/types.hpp"

namespace tacc::test {

namespace {
constexpr auto patience = std::chrono::seconds(10);
}

taccComm_t FakeWorld::make(int rank, int ranks, CommConfig config) {
  return makeHandle(std::make_unique<FakeCommunicator>(*this, rank, ranks, std::move(config)));
}

FakeWorld::Rank& FakeWorld::rank(int number) {
  if (ranks_.size() <= static_cast<std::size_t>(number)) ranks_.resize(static_cast<std::size_t>(number) + 1);
  return ranks_[static_cast<std::size_t>(number)];
}

void FakeWorld::record(Event event) {
  const std::lock_guard lock(mutex_);
  event.thread = std::this_thread::get_id();
  events_.push_back(std::move(event));
  changed_.notify_all();
}

std::vector<Event> FakeWorld::events() {
  const std::lock_guard lock(mutex_);
  return events_;
}

bool FakeWorld::waitForEvents(std::size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return events_.size() >= count; });
}

void FakeWorld::hold(int number) {
  const std::lock_guard lock(mutex_);
  rank(number).held = true;
}

void FakeWorld::letGo(int number) {
  const std::lock_guard lock(mutex_);
  rank(number).held = false;
  changed_.notify_all();
}

void FakeWorld::breakRank(int number, taccResult_t result, const std::string& message) {
  const std::lock_guard lock(mutex_);
  rank(number).broken = result;
  rank(number).message = message;
  changed_.notify_all();
}

void FakeWorld::meet(int ranks) {
  const std::lock_guard lock(mutex_);
  meeting_ = ranks;
  arrived_ = 0;
}

void FakeWorld::pass(int number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !rank(number).held || rank(number).broken != taccSuccess; });
  if (rank(number).broken != taccSuccess) throw Error(rank(number).broken, rank(number).message);
  ++arrived_;
  changed_.notify_all();
  const int full = (arrived_ + meeting_ - 1) / meeting_ * meeting_;
  if (!changed_.wait_for(lock, patience, [&] { return arrived_ >= full; })) fail(taccTimeout, "nobody came to meet");
}

void FakeCommunicator::run(const Call& call) {
  Event event;
  event.what = "run";
  event.rank = rank();
  event.call = call;
  if (call.factor != nullptr) {
    event.factor.resize(8);
    std::memcpy(event.factor.data(), call.factor, sizeOf(call.type));
  }
  world_.record(std::move(event));
  world_.pass(rank());
  if (call.collective != Collective::allReduce || call.type != taccFloat32) return;
  float factor = static_cast<float>(ranks());
  if (call.factor != nullptr) {
    float own;
    std::memcpy(&own, call.factor, sizeof(own));
    factor *= own;
  }
  for (std::size_t i = 0; i < call.count; ++i) {  // the buffers need not be aligned
    float number;
    std::memcpy(&number, static_cast<const std::byte*>(call.send) + i * sizeof number, sizeof number);
    number *= factor;
    std::memcpy(static_cast<std::byte*>(call.receive) + i * sizeof number, &number, sizeof number);
  }
}

void FakeCommunicator::exchange(std::span<const PointToPoint> operations) {
  Event event;
  event.what = "exchange";
  event.rank = rank();
  event.operations.assign(operations.begin(), operations.end());
  world_.record(std::move(event));
  world_.pass(rank());
}

std::unique_ptr<Communicator> FakeCommunicator::shrink(std::span<const int> excluded, const CommConfig& config) {
  Event event;
  event.what = "shrink";
  event.rank = rank();
  event.config = config;
  world_.record(std::move(event));
  return std::make_unique<FakeCommunicator>(world_, 0, ranks() - static_cast<int>(excluded.size()), config);
}

std::unique_ptr<Communicator> FakeCommunicator::split(int color, int key, const CommConfig& config) {
  Event event;
  event.what = "split";
  event.rank = rank();
  event.config = config;
  world_.record(std::move(event));
  world_.pass(rank());
  if (color < 0) return nullptr;
  return std::make_unique<FakeCommunicator>(world_, key, ranks(), config);
}

std::unique_ptr<Communicator> FakeCommunicator::makeGroup(std::span<const int> members, const CommConfig& config) {
  Event event;
  event.what = "group";
  event.rank = rank();
  event.config = config;
  world_.record(std::move(event));
  world_.pass(rank());
  const auto place = std::ranges::find(members, rank()) - members.begin();
  return std::make_unique<FakeCommunicator>(world_, static_cast<int>(place), static_cast<int>(members.size()), config);
}

void FakeCommunicator::abort(const std::string& why) noexcept { world_.breakRank(rank(), taccRemoteError, why); }

taccResult_t FakeCommunicator::asyncError() const noexcept {
  const std::lock_guard lock(world_.mutex_);
  return world_.rank(rank()).broken;
}

void FakeCommunicator::registerBuffer(void* buffer, std::size_t bytes) {
  Event event;
  event.what = "register";
  event.rank = rank();
  event.call.receive = buffer;
  event.call.count = bytes;
  world_.record(std::move(event));
}

void FakeCommunicator::deregisterBuffer(void* buffer) {
  Event event;
  event.what = "deregister";
  event.rank = rank();
  event.call.receive = buffer;
  world_.record(std::move(event));
}

}  // namespace tacc::test
