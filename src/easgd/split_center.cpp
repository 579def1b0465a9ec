#include "easgd/split_center.hpp"

#include <algorithm>
#include <numeric>

namespace tacc {
namespace {

std::size_t sizeTogether(const std::vector<std::unique_ptr<Center>>& slices) {
  return std::accumulate(slices.begin(), slices.end(), std::size_t{0},
                         [](std::size_t sum, const auto& slice) { return sum + slice->size(); });
}

}  // namespace

std::pair<std::size_t, std::size_t> centerSlice(std::size_t count, std::size_t slices, std::size_t index) noexcept {
  const std::size_t least = count / slices, longer = count % slices;
  const auto begin = [&](std::size_t i) { return i * least + std::min(i, longer); };
  return {begin(index), begin(index + 1)};
}

SplitCenter::SplitCenter(std::vector<std::unique_ptr<Center>> slices, std::size_t first)
    : Center(sizeTogether(slices), slices.front()->isLocked()),
      slices_(std::move(slices)),
      first_(first % slices_.size()) {}

template <class Work>
void SplitCenter::forSlices(const Work& work) {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const std::size_t index = (first_ + i) % slices_.size();
    work(*slices_[index], centerSlice(size(), slices_.size(), index).first);
  }
}

void SplitCenter::exchange(const float* weights, float alpha, const Sink& sink) {
  forSlices([&](Center& slice, std::size_t begin) {
    slice.exchange(weights + begin, alpha, [&](std::size_t first, std::size_t n, const float* difference) {
      sink(begin + first, n, difference);
    });
  });
  ++ownUpdates_;
}

void SplitCenter::read(float* out) {
  forSlices([&](Center& slice, std::size_t begin) { slice.read(out + begin); });
}

void SplitCenter::write(const float* values) {
  forSlices([&](Center& slice, std::size_t begin) { slice.write(values + begin); });
}

CenterCounts SplitCenter::counts() {
  CenterCounts all = slices_.front()->counts();
  for (std::size_t i = 1; i < slices_.size(); ++i) {
    const CenterCounts one = slices_[i]->counts();
    all.bytes += one.bytes;
    all.inherited += one.inherited;
  }
  all.ownUpdates = ownUpdates_;
  return all;
}

bool SplitCenter::isRemote() const noexcept {
  return std::ranges::any_of(slices_, [](const auto& slice) { return slice->isRemote(); });
}

}  // namespace tacc
