#include "shard.hpp"

#include <algorithm>

#include "errors.hpp"
#include "random.hpp"

namespace tacc::train {

Shard::Shard(const Dataset& data, int rank, int ranks, int batch, std::uint64_t seed)
    : data_(data), rank_(rank), ranks_(ranks), batch_(batch), seed_(seed) {
  order_.resize(data.size() / static_cast<std::size_t>(ranks));
  if (steps() == 0)
    fail("a batch of {} images is more than the {} that each of {} ranks has", batch, order_.size(), ranks);
}

void Shard::beginEpoch(int epoch) {
  for (std::size_t i = 0; i < order_.size(); ++i)
    order_[i] = i * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank_);
  Random({seed_, 2, static_cast<std::uint64_t>(rank_), static_cast<std::uint64_t>(epoch)}).shuffle(order_);
}

void Shard::take(int step, Batch& batch) const {
  const std::size_t count = static_cast<std::size_t>(batch_), each = data_.pixelsEach();
  batch.pixels.resize(count * each);
  batch.labels.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t image = order_[static_cast<std::size_t>(step) * count + i];
    std::copy_n(data_.image(image), each, batch.pixels.begin() + static_cast<std::ptrdiff_t>(i * each));
    batch.labels[i] = data_.labels[image];
  }
}

}  // namespace tacc::train
