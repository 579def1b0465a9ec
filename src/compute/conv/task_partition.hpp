// How a correlation over a batch is cut into tasks. Tasks write different outputs, and how one output is summed does
// not depend on the cut, so neither do its bits.
#pragma once

#include <algorithm>
#include <cstddef>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/task_balance.hpp"

namespace tacc::conv {

struct TaskPart {
  std::size_t from, to;
  bool isEmpty() const { return from >= to; }
};

/// Part `index` of `parts` nearly equal parts of `count`.
constexpr TaskPart partOf(std::size_t count, std::size_t parts, std::size_t index) {
  return {count * index / parts, count * (index + 1) / parts};
}

/// Small images go together, so that weights are used for more than a few pixels.
constexpr int imagesOfTask(int batch, int pixelsOfImage) {
  constexpr int pixelsWanted = 196;
  return std::clamp(pixelsWanted / pixelsOfImage, 1, batch);
}

/// What kernel() of plans says of this order.
inline constexpr const char* groupsInTurn = "groups in turn";

/// images x channel groups x parts of tiles x parts of output channels. Output channels vary slowest within an image,
/// so that consecutive tasks use the same weights; channel groups do too, unless they share pixels of a result that
/// leaves the L2 cache.
class TaskPartition {
 public:
  TaskPartition(const DirectDriver& driver, int batch, int channelGroups, int pixelsOfImage, int maxWorkers,
                std::size_t leastTileParts = 1)
      : batch_(static_cast<std::size_t>(batch)), channelGroups_(static_cast<std::size_t>(channelGroups)) {
    imagesAtOnce_ = static_cast<std::size_t>(imagesOfTask(batch, pixelsOfImage));
    const auto workers = static_cast<std::size_t>(maxWorkers);
    if (workers > 1) imagesAtOnce_ = std::min(imagesAtOnce_, std::max<std::size_t>(1, batch_ / (2 * workers)));
    imageParts_ = (batch_ + imagesAtOnce_ - 1) / imagesAtOnce_;
    tileParts_ = std::max(leastTileParts, (driver.tiles() + driver.tilesAtOnce() - 1) / driver.tilesAtOnce());
    // Rather by outputs than by tiles: weights are read once then.
    const TaskCut cut = balancedCut(
        {imageParts_ * channelGroups_, std::max(driver.tiles(), tileParts_), driver.groups().size(), tileParts_},
        workers);
    tileParts_ = cut.rowParts;
    outputParts_ = cut.columnParts;
    areGroupsInTurn_ = channelGroups_ > 1 && driver.tilesInOrder() < driver.tiles();
  }

  /// No two tasks are of the same tiles.
  bool isByTiles() const { return outputParts_ == 1; }

  /// Whether all channel groups go through some tiles before the next ones.
  bool areGroupsInTurn() const { return areGroupsInTurn_; }

  std::size_t tasks() const { return imageParts_ * channelGroups_ * tileParts_ * outputParts_; }

  struct Task {
    TaskPart images, tiles, outputs;
    std::size_t channelGroup;
  };
  /// `driver` is the one of the constructor, or another one over the same batch, whose tiles and outputs are cut
  /// into as many parts.
  Task task(const DirectDriver& driver, std::size_t index) const {
    std::size_t group = 0;
    if (areGroupsInTurn_) {
      group = index % channelGroups_;
      index /= channelGroups_;
    }
    const std::size_t tile = index % tileParts_;
    index /= tileParts_;
    const std::size_t output = index % outputParts_;
    index /= outputParts_;
    if (!areGroupsInTurn_) {
      group = index % channelGroups_;
      index /= channelGroups_;
    }
    const std::size_t image = index * imagesAtOnce_;
    return {{image, std::min(batch_, image + imagesAtOnce_)},
            partOf(driver.tiles(), tileParts_, tile),
            partOf(driver.groups().size(), outputParts_, output),
            group};
  }

 private:
  std::size_t batch_, channelGroups_;
  std::size_t imagesAtOnce_ = 1, imageParts_ = 1, tileParts_ = 1, outputParts_ = 1;
  bool areGroupsInTurn_ = false;
};

}  // namespace tacc::conv
