#include "compute/conv/amx/row_making.hpp"

#include <algorithm>
#include <cstdint>

namespace tacc::conv {
namespace {

/// The same for one pair of blocks of channels. Lines that follow each other in memory too are one run.
RunsOfStrips runsOfPair(std::span<const Bf16x3Run> lines, std::ptrdiff_t pixel, int rows) {
  RunsOfStrips strips;
  for (const Bf16x3Run& line : lines) {
    for (int done = 0, here = 0; done < line.rows; done += here) {
      const std::ptrdiff_t row = line.row + done, source = line.source + done * pixel;
      here = std::min(line.rows - done, rows - static_cast<int>(row % rows));
      strips.resize(std::max(strips.size(), static_cast<std::size_t>(row / rows) + 1));
      std::vector<Bf16x3Run>& runs = strips.back();
      if (!runs.empty() && runs.back().source + runs.back().rows * pixel == source) {
        runs.back().rows += here;
      } else {
        runs.push_back({row % rows, source, here});
      }
    }
  }
  return strips;
}

}  // namespace

RunsOfStrips runsOfStrips(const Bf16x3Image& image, int part, const SplitSides& sides, int rows) {
  RunsOfStrips all;
  for (const std::vector<Bf16x3Run>& runs : runsOfPair(image.runs(part, 0), sides.in.pixel, rows)) {
    std::vector<Bf16x3Run>& ofUnits = all.emplace_back();
    for (int unit = 0; unit < sides.groups * sides.inPairs(); ++unit) {
      const int group = unit / sides.inPairs(), pair = unit % sides.inPairs();
      const bool isLast = pair + 1 == sides.inPairs(), isHalf = 2 * pair + 1 == sides.inBlocks;
      const std::uint64_t last = sides.in.lastMask;
      for (Bf16x3Run run : runs) {
        run.row += std::ptrdiff_t{unit} * rows;
        run.source += group * sides.in.group + 2 * pair * sides.in.block;
        if (isLast) run.lanes = isHalf ? last : last << blockLength | 0xFFFF;
        ofUnits.push_back(run);
      }
    }
  }
  return all;
}

RowMaking::RowMaking(const RowSource& source)
    : source_(source),
      end_(source.all.empty() ? source.sides.groups * source.sides.inPairs() * source.image.phases() : 1) {
  if (source.all.empty()) rows_ = static_cast<int>(source.rows) * end_;
  for (const Bf16x3Run& run : source.all) rows_ += run.rows;
  load();
}

void RowMaking::load() {
  if (unit_ >= end_) return;
  const SplitSides& sides = source_.sides;
  const auto numberBytes = static_cast<std::ptrdiff_t>(source_.kernels.numberBytes);
  const std::byte* const image = source_.tensor + source_.image.part(source_.part).image * sides.in.image * numberBytes;
  const auto setRuns = [&](std::span<const Bf16x3Run> runs) {
    work_.run = work_.fetchRun = runs.data();
    work_.end = runs.data() + runs.size();
  };
  work_ = {};
  work_.partStep = source_.rows * rowBytes;
  work_.evenStep = work_.oddStep = sides.strideWidth * sides.in.pixel;
  if (!source_.all.empty()) {
    setRuns(source_.all);
    work_.rows = source_.all.back().row + source_.all.back().rows;
    work_.even = image;
    work_.odd = image + sides.in.block * numberBytes;
    work_.output = source_.to;
    work_.leavesGaps = true;
    return;
  }
  alignas(64) static constexpr float zeros[blockLength] = {};
  const int pairs = sides.inPairs(), phases = source_.image.phases();
  const int pair = unit_ % pairs, phase = unit_ / pairs % phases, group = unit_ / (pairs * phases);
  const bool isHalf = 2 * pair + 1 == sides.inBlocks;
  setRuns(source_.image.runs(source_.part, phase));
  work_.rows = source_.rows;
  const std::ptrdiff_t even = group * sides.in.group + 2 * pair * sides.in.block;
  work_.even = image + even * numberBytes;
  work_.odd = isHalf ? reinterpret_cast<const std::byte*>(zeros) : image + (even + sides.in.block) * numberBytes;
  if (isHalf) work_.oddStep = 0;
  work_.firstLane = 2 * pair * blockLength % lanesOfRun;
  if (pair + 1 == pairs) (isHalf ? work_.evenMask : work_.oddMask) = sides.in.lastMask;
  work_.output = source_.to + unit_ * work_.partStep * source_.kernels.parts;
}

}  // namespace tacc::conv
