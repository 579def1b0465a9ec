#include "easgd/mapped_center.hpp"

#include <algorithm>
#include <utility>

namespace tacc {

MappedCenter::MappedCenter(std::shared_ptr<CenterMemory> memory, std::uint32_t number, double timeout,
                           std::function<void()> look, std::shared_ptr<void> keeper)
    : Center(memory->size(), memory->isLocked()),
      memory_(std::move(memory)),
      timeout_(timeout),
      look_(std::move(look)),
      keeper_(std::move(keeper)),
      difference_(std::make_unique<float[]>(std::min(memory_->size(), CenterMemory::shardElements))) {
  // Numbers that follow each other lie far apart on the circle of the shards, however many there are.
  constexpr std::uint32_t goldenShare = 0x9e3779b9;
  const std::uint64_t place = std::uint64_t{number * goldenShare} * memory_->shards() >> 32;
  start_ = static_cast<std::size_t>(place);
}

template <class Work>
void MappedCenter::forShards(const Work& work) {
  const std::size_t shards = memory_->shards();
  for (std::size_t i = 0; i < shards; ++i) {
    const std::size_t first = (start_ + i) % shards * CenterMemory::shardElements;
    work(first, CenterMemory::inShard(first, size() - first));
  }
}

void MappedCenter::exchange(const float* weights, float alpha, const Sink& sink) {
  look_();
  forShards([&](std::size_t first, std::size_t n) {
    memory_->access(first, n, CenterMemory::Move{weights + first, alpha, difference_.get()}, timeout_, look_);
    sink(first, n, difference_.get());
  });
  lastUpdate_ = memory_->addUpdate();
  ++ownUpdates_;
  bytes_ += 2 * size() * sizeof(float);
}

void MappedCenter::read(float* out) {
  look_();
  forShards([&](std::size_t first, std::size_t n) {
    memory_->access(first, n, CenterMemory::Read{out + first}, timeout_, look_);
  });
  bytes_ += size() * sizeof(float);
}

void MappedCenter::write(const float* values) {
  look_();
  forShards([&](std::size_t first, std::size_t n) {
    memory_->access(first, n, CenterMemory::Write{values + first}, timeout_, look_);
  });
  bytes_ += size() * sizeof(float);
}

CenterCounts MappedCenter::counts() {
  look_();
  return {memory_->updates(), ownUpdates_, bytes_, memory_->inherited(), memory_->workers()};
}

}  // namespace tacc
