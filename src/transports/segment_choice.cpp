#include "transports/segment_choice.hpp"

#include <algorithm>

namespace tacc {

SegmentChoice::Message SegmentChoice::next() noexcept {
  if (sent_ == period) sent_ = 0;
  if (sent_ == 0) noted_ = {};
  const int index = sent_++;
  const int block = index / messagesOfBlock;
  if (block >= blocks) return {sizes[best_], false};
  return {sizes[1 - static_cast<std::size_t>(block) % sizes.size()], index % messagesOfBlock >= notTimed};
}

void SegmentChoice::note(const Message& message, std::size_t bytes, double seconds) noexcept {
  if (!message.isTimed) return;
  const std::size_t size = message.segment == sizes.front() ? 0 : 1;
  if (noted_[size] == timesOfSize) return;  // of a trial before this one
  secondsPerByte_[size][noted_[size]++] = seconds / static_cast<double>(bytes);
  if (std::all_of(noted_.begin(), noted_.end(), [](std::size_t noted) { return noted == timesOfSize; })) decide();
}

/// By medians: a message may wait for a receiver that computes.
void SegmentChoice::decide() noexcept {
  std::array<double, sizes.size()> median;
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    auto& times = secondsPerByte_[size];
    const auto middle = times.begin() + (timesOfSize - 1) / 2;
    std::nth_element(times.begin(), middle, times.end());
    median[size] = *middle;
  }
  const std::size_t other = 1 - best_;
  if (median[other] < worthIt * median[best_]) best_ = other;
}

}  // namespace tacc
