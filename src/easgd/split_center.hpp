// One center whose numbers are kept by several processes, a slice by each: the load of serving is that of many links.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "easgd/center.hpp"

namespace tacc {

/// The elements [begin, end) of the slice `index` of `slices`.
std::pair<std::size_t, std::size_t> centerSlice(std::size_t count, std::size_t slices, std::size_t index) noexcept;

class SplitCenter final : public Center {
 public:
  /// `slices`: by their index, at least one, of centerSlice() numbers each. `first`: the one with which this worker's
  /// exchanges begin; where workers begin at different ones, no server has all of them at the same time.
  SplitCenter(std::vector<std::unique_ptr<Center>> slices, std::size_t first);

  void exchange(const float* weights, float alpha, const Sink& sink) override;
  void read(float* out) override;
  void write(const float* values) override;
  /// Updates and workers are those of the first slice.
  CenterCounts counts() override;
  std::uint64_t lastUpdate() const noexcept override { return slices_.front()->lastUpdate(); }
  /// Whether any of them is.
  bool isRemote() const noexcept override;

 private:
  /// work(slice, its first element), for each.
  template <class Work>
  void forSlices(const Work& work);

  std::vector<std::unique_ptr<Center>> slices_;
  std::size_t first_;
  std::uint64_t ownUpdates_ = 0;
};

}  // namespace tacc
