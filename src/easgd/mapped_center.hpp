// A worker that maps the center's memory.
#pragma once

#include <functional>
#include <memory>

#include "easgd/center.hpp"
#include "easgd/center_memory.hpp"

namespace tacc {

class MappedCenter final : public Center {
 public:
  /// `number`: of this worker among those of the center; workers begin their exchanges at different shards, so that
  /// they do not stand in one queue. `look` throws when the center has ended: called before each access, and about
  /// every 50 ms while one waits. `keeper`: what lives as long as this object, and ends
  /// before it lets go of the memory.
  MappedCenter(std::shared_ptr<CenterMemory> memory, std::uint32_t number, double timeout, std::function<void()> look,
               std::shared_ptr<void> keeper);

  void exchange(const float* weights, float alpha, const Sink& sink) override;
  void read(float* out) override;
  void write(const float* values) override;
  CenterCounts counts() override;
  std::uint64_t lastUpdate() const noexcept override { return lastUpdate_; }
  bool isRemote() const noexcept override { return false; }

 private:
  /// Calls work(first, n) for every shard.
  template <class Work>
  void forShards(const Work& work);

  std::shared_ptr<CenterMemory> memory_;
  std::size_t start_;
  double timeout_;
  std::function<void()> look_;
  std::shared_ptr<void> keeper_;
  std::unique_ptr<float[]> difference_;
  std::uint64_t ownUpdates_ = 0, bytes_ = 0, lastUpdate_ = 0;
};

}  // namespace tacc
