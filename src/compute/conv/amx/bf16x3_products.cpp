// Convolutions forward and backward to the data as products of split numbers (bf16x3.hpp): a part of the batch is split
// into the workspace, and 32 output channels at a time are computed for all its positions.
//
// Bfloat16 whose channels lie beside each other, in whole steps, is multiplied where it lies by kernels of one pixel.
// Of other bfloat16 these copy a few strips of positions at a time, which stay in the L1 cache, while the ones before
// are multiplied.
//
// Steps of a sum are taps of 32 channels. Of a part that is split, all stays in the L2 cache; weights are read from
// there too, or from behind it once for each part. Activations in bfloat16, with weights that are rounded to it, are
// gone through alike: they are one part, which is copied.
#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/amx/bf16x3_jobs.hpp"
#include "compute/conv/amx/bf16x3_weights.hpp"
#include "compute/conv/amx/line_rows.hpp"
#include "compute/conv/amx/row_making.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::conv {
namespace {

class Bf16x3Products final : public ConvPlan {
 public:
  /// `d` has joined groups.
  Bf16x3Products(const Description& d, int joined, const Bf16x3Kernels& kernels)
      : ConvPlan(kernels.parts == 1 ? "amx 32x2 bf16 pairs" : "amx 32x2"),
        description_(d),
        joined_(joined),
        kernels_(kernels),
        sides_(d),
        jobs_(splitJobs(d)),
        image_(splitImage(d, jobs_)),
        columns_(2),
        readsInPlace_(readsInPlace(d)),
        readsHalves_(readsInPlace_ && sides_.inBlocks == 1),
        copiesStrips_(copiesStrips(d)),
        readsLines_(readsLines(d)),
        isNonTemporal_(writesNonTemporally(d)) {
    image_.findRuns(sides_.in.steps());
    if (readsLines_) {
      image_.cutRuns([&](const Bf16x3Run& run) { return cutAtBorders(d.shape, run); });
    }
    const double weightBytes = splitWeightBytes(d, jobs_);
    fetchesWeights_ = !staysInL2(static_cast<std::size_t>(weightBytes));
    // Weights from behind the L2 cache are read once for all positions where these are few.
    constexpr int fewTiles = 4;
    if (sides_.outBlocks == 1 || (fetchesWeights_ && mostTiles() <= fewTiles)) columns_ = 1;
    if (!fetchesWeights_) stripsAtOnce_ = stripsInL1();
    comesFromMemory_ =
        !fetchesWeights_ && bytesOf(d.shape.batch * sides_.in.image) > static_cast<std::ptrdiff_t>(l2CacheBytes());
    for (int kind = 0; copiesStrips_ && kind < image_.kinds(); ++kind) {
      const int part = image_.partOfKind(kind);
      stripRuns_.push_back(part < 0 ? RunsOfStrips{} : runsOfStrips(image_, part, sides_, static_cast<int>(rows())));
    }
    if (readsInPlace_) lastRuns_ = runsOfStrips(image_, image_.parts() - 1, sides_, positionsOfStrip()).back();
    for (const Bf16x3Job& job : jobs_) {
      work_.push_back(workOf(job, packedFloats_));
      packedFloats_ += static_cast<std::size_t>(sides_.groups) * groupFloats(job);
    }
  }

  std::size_t workspaceBytes() const override {
    return biasBytes() + static_cast<std::size_t>(description_.maxWorkers) * workerBytes();
  }
  std::size_t packedFloats() const override { return packedFloats_; }
  double predictedSeconds() const override { return splitCycles(description_, image_, jobs_) / assumedHertz; }

  void pack(const float* weights, float* packed) const override;
  void run(const Buffers& buffers, const TaskExecutor& executor) const override;

 private:
  std::ptrdiff_t weightTileBytes() const { return kernels_.parts * tileBytes; }
  static constexpr std::size_t sumsBytes = 2 * 4 * static_cast<std::size_t>(tileBytes);  // two sets: one is delivered

  struct Work {
    std::vector<std::ptrdiff_t> steps;    // bytes from a position to its row for each step
    std::vector<std::ptrdiff_t> inPlace;  // the same where pixels are rows
    std::vector<std::ptrdiff_t> outputs;  // of the positions of a part
    std::vector<std::uint8_t> areRuns;    // of each tile of them, whether it is of pixels that follow each other
    std::size_t packed;                   // where its weights begin, in floats
  };
  Work workOf(const Bf16x3Job& job, std::size_t packed) const;

  /// Blocks of output that are computed together are a set of columns. How many sets there are, of one group of
  /// channels.
  int columnSets() const { return ceilDivide(sides_.outBlocks, columns_); }
  /// Of one part.
  int mostTiles() const {
    int most = 0;
    for (const Bf16x3Job& job : jobs_) {
      most = std::max(most, ceilDivide(image_.positions(image_.part(0), job.outHeight, job.outWidth), tileRows));
    }
    return most;
  }
  /// Of all groups.
  std::size_t columnSetsOfAll() const { return static_cast<std::size_t>(sides_.groups * columnSets()); }
  int tilesOfStrip() const { return 4 / columns_; }
  /// So many strips of all channels stay in half of the L1 cache while sets of columns take turns.
  std::size_t stripsInL1() const {
    constexpr int l1Bytes = 24 << 10;
    const int bytes = sides_.inPairs() * kernels_.parts * tilesOfStrip() * static_cast<int>(tileBytes);
    return static_cast<std::size_t>(std::max(1, l1Bytes / bytes));
  }
  std::size_t biasBytes() const { return (biasWorkspaceBytes(description_) + 63) / 64 * 64; }
  int positionsOfStrip() const { return tilesOfStrip() * tileRows; }
  /// Of what is split of a pair of blocks: of a part, of the strips at once, or, of what is read in place, of its last
  /// strip.
  std::ptrdiff_t rows() const {
    if (readsInPlace_) return positionsOfStrip();
    return copiesStrips_ ? static_cast<std::ptrdiff_t>(stripsAtOnce_) * positionsOfStrip() : image_.rows();
  }
  std::ptrdiff_t partStep() const { return rows() * rowBytes; }
  std::ptrdiff_t bytesOf(std::ptrdiff_t numbers) const {
    return numbers * static_cast<std::ptrdiff_t>(kernels_.numberBytes);
  }
  std::ptrdiff_t pairStep() const { return partStep() * kernels_.parts; }
  /// Of one group.
  int groupUnits() const { return sides_.inPairs() * image_.phases(); }
  /// Of all groups.
  std::size_t units() const { return static_cast<std::size_t>(sides_.groups * groupUnits()); }
  std::size_t splitBytes() const { return static_cast<std::size_t>(pairStep()) * units(); }
  std::size_t groupFloats(const Bf16x3Job& job) const {
    return job.taps.size() * static_cast<std::size_t>(sides_.inPairs() * sides_.outBlocks) *
           static_cast<std::size_t>(weightTileBytes()) / sizeof(float);
  }
  /// Of one worker: sums, which of the parts it has split, and two of those, split.
  std::size_t workerBytes() const {
    const bool areTwo = copiesStrips_ || (image_.parts() > 1 && !readsInPlace_);
    return sumsBytes + sizeof(Held) + static_cast<std::size_t>(areTwo ? 2 : 1) * splitBytes();
  }
  struct alignas(64) Held {
    int parts[2];
  };
  struct Memory {
    float* sums;
    Held* held;
    std::byte* split[2];
  };
  Memory memoryOf(const Buffers& buffers, int worker) const;

  RowMaking makeRows(const std::byte* input, std::byte* to, int part, std::span<const Bf16x3Run> all = {}) const {
    return RowMaking({kernels_, sides_, image_, part, all, input, to, rows()});
  }
  /// Of the strips at once from one on.
  const std::vector<Bf16x3Run>& runsFrom(int part, std::size_t first) const {
    return stripRuns_[static_cast<std::size_t>(image_.kindOf(part))][first / stripsAtOnce_];
  }

  /// From strip to strip of a task.
  struct Progress {
    DeliverWork deliver[2];   // of the strip before and of this one, in turn
    bool areInTiles = false;  // the sums of the strip before
    int side = 0;
    std::size_t cost = 0;       // that is left of this part
    RowMaking* next = nullptr;  // or null
  };

  /// Of the strips of one part, those of all columns and jobs one after the other, a share of about the same cost as
  /// others.
  struct Share {
    const Buffers& buffers;
    const float* bias;
    const std::byte* input;  // split, or where it lies
    const std::byte* last;   // what is read in place: of the last strip, if it ends behind the tensor, a copy
    std::byte* strips[2];    // what is copied a few strips at a time: where to
    float* sums;
    int index;
    Bf16x3Image::Part part;
    TaskPart costs;
  };
  std::size_t stripsOf(const Bf16x3Image::Part& part, const Bf16x3Job& job) const;
  /// In steps: one more than there are, for the rest.
  std::size_t costOfStrip(std::size_t job) const { return work_[job].steps.size() + 1; }
  std::size_t costOf(const Bf16x3Image::Part& part) const;
  void multiply(const Share& share, Progress& progress) const;
  std::ptrdiff_t lineNumbers() const { return sides_.width * sides_.in.pixel; }
  /// Of a part that is read in place.
  const std::byte* copyLastStrip(int part, const std::byte* tensor, std::byte* to) const;
  /// Some strips of one set of columns of one job. `rows`: of position 0.
  void multiplyStrips(const Share& share, std::size_t job, std::size_t set, TaskPart strips, const std::byte* rows,
                      Progress& progress) const;

  Description description_;
  int joined_;
  const Bf16x3Kernels& kernels_;
  SplitSides sides_;
  std::vector<Bf16x3Job> jobs_;
  Bf16x3Image image_;
  int columns_;                                                         // blocks of output that are computed together
  std::size_t stripsAtOnce_ = std::numeric_limits<std::size_t>::max();  // of a set of columns, before the next set
  std::vector<Work> work_;
  std::size_t packedFloats_ = 0;
  bool readsInPlace_;  // pixels are rows
  bool readsHalves_;   // of one block of channels
  bool copiesStrips_;
  std::vector<RunsOfStrips> stripRuns_;  // of these, for each kind of part
  std::vector<Bf16x3Run> lastRuns_;      // of the last strip of what is read in place
  bool readsLines_;                      // lines of the kernel are
  bool isNonTemporal_, fetchesWeights_ = false, comesFromMemory_ = false;
};

Bf16x3Products::Work Bf16x3Products::workOf(const Bf16x3Job& job, std::size_t packed) const {
  Work work{
      {}, {}, image_.outputs(job.outHeight, job.outWidth, sides_.out.image, job.outLine, job.outPixel), {}, packed};
  for (int pair = 0; pair < sides_.inPairs(); ++pair) {
    for (const Tap& tap : job.taps) {
      work.steps.push_back((std::ptrdiff_t{image_.phaseOf(tap)} * sides_.inPairs() + pair) * pairStep() +
                           image_.distanceOf(tap) * rowBytes);
    }
  }
  for (std::size_t tile = 0; tile + tileRows <= work.outputs.size(); tile += tileRows) {
    const auto first = work.outputs.begin() + static_cast<std::ptrdiff_t>(tile);
    const auto isNoNext = [&](std::ptrdiff_t one, std::ptrdiff_t next) {
      return one < 0 || next != one + job.outPixel;
    };
    work.areRuns.push_back(std::adjacent_find(first, first + tileRows, isNoNext) == first + tileRows ? 1 : 0);
  }
  for (int pair = 0; pair < sides_.inPairs(); ++pair) work.inPlace.push_back(pair * rowBytes);
  return work;
}

void Bf16x3Products::pack(const float* weights, float* packed) const {
  const Bf16x3Weights source(description_, joined_, kernels_, weights);
  float* to = packed;
  for (const Bf16x3Job& job : jobs_) {
    for (int set = 0; set < sides_.groups * columnSets(); ++set) {
      const int group = set / columnSets(), first = set % columnSets() * columns_;
      for (int pair = 0; pair < sides_.inPairs(); ++pair) {
        for (const int tap : job.kernelTaps) {
          for (int block = first; block < std::min(first + columns_, sides_.outBlocks); ++block) {
            source.pack(group, pair, block, tap, to);
            to += weightTileBytes() / static_cast<std::ptrdiff_t>(sizeof(float));
          }
        }
      }
    }
  }
}

void Bf16x3Products::multiplyStrips(const Share& share, std::size_t job, std::size_t set, TaskPart strips,
                                    const std::byte* rows, Progress& progress) const {
  const Bf16x3Job& of = jobs_[job];
  const Work& work = work_[job];
  const int group = static_cast<int>(set) / columnSets();
  const int first = static_cast<int>(set) % columnSets() * columns_;  // block of the group
  const int block = group * sides_.outBlocks + first;
  const int blocks = std::min(columns_, sides_.outBlocks - first);
  const auto steps = static_cast<std::ptrdiff_t>(work.steps.size());
  const int positions = image_.positions(share.part, of.outHeight, of.outWidth);
  const auto* const weights = reinterpret_cast<const std::byte*>(share.buffers.packedWeights + work.packed);
  const std::ptrdiff_t blockBytes = steps * weightTileBytes();
  const std::ptrdiff_t result = share.part.image * sides_.out.image + of.output + share.part.line * of.outLine +
                                group * sides_.out.group + first * sides_.out.block;
  ProductCall product{};
  product.aPart = partStep();
  product.b = weights + block * blockBytes;
  product.bPart = tileBytes;
  product.bTile = weightTileBytes();
  product.bStep = blocks * weightTileBytes();
  product.steps = static_cast<int>(steps);
  auto* const output = reinterpret_cast<std::byte*>(share.buffers.result) + bytesOf(result);
  const std::byte* const addend = description_.residual
                                      ? reinterpret_cast<const std::byte*>(share.buffers.residual) + bytesOf(result)
                                  : description_.accumulate ? output
                                                            : nullptr;
  const float* const bias = share.bias != nullptr ? share.bias + block * blockLength : nullptr;
  const auto count = static_cast<int>(strips.to - strips.from);
  const std::byte* const input = rows + group * groupUnits() * pairStep();
  const std::size_t allStrips = stripsOf(share.part, of);
  // Weights from behind the L2 cache: a strip brings its share of those of the next blocks, or, if it is the only
  // one, those that it will need soon.
  constexpr std::ptrdiff_t stepsAhead = 16;
  if (fetchesWeights_) product.fetchLines = ceilDivide(blocks * kernels_.parts * tileRows, count);
  for (int i = 0; i < count; ++i) {
    const int position = (static_cast<int>(strips.from) + i) * positionsOfStrip();
    const int tiles = std::min(tilesOfStrip(), ceilDivide(positions - position, tileRows));
    DeliverWork& deliver = progress.deliver[progress.side];
    float* const sums = share.sums + progress.side * 4 * tileFloats;
    deliver = {.sums = sums,
               .positions = std::min(tiles * tileRows, positions - position),
               .blocks = blocks,
               .outputs = work.outputs.data() + position,
               .areRuns = work.areRuns.data() + position / tileRows,
               .bias = bias,
               .addend = addend,
               .output = output,
               .outputBlock = sides_.out.block,
               .outputPixel = of.outPixel,
               .lastMask = first + blocks == sides_.outBlocks ? sides_.out.lastMask : std::uint16_t{0xFFFF},
               .activation = description_.activation,
               .isNonTemporal = isNonTemporal_ && addend == nullptr};
    const bool isLast = share.last != nullptr && strips.from + static_cast<std::size_t>(i) + 1 == allStrips;
    if (readsInPlace_ && !isLast) {
      product.aRow = bytesOf(sides_.in.pixel);
      product.aSteps = work.inPlace.data();
      product.a = share.input + bytesOf(group * sides_.in.group) + position * product.aRow;
    } else {
      product.aRow = rowBytes;
      product.aSteps = work.steps.data();
      product.a = isLast ? share.last + group * groupUnits() * pairStep() : input + position * rowBytes;
    }
    product.aTile = tileRows * product.aRow;
    if (readsInPlace_ && comesFromMemory_) {
      const std::size_t later = strips.from + static_cast<std::size_t>(i) + stripsAtOnce_;
      const bool isThere = later + 1 < allStrips;
      const int each = ceilDivide(positionsOfStrip(), sides_.groups * columnSets());
      const int row = static_cast<int>(set) * each;
      product.rowsAheadCount = isThere ? std::clamp(positionsOfStrip() - row, 0, each) : 0;
      product.rowsAhead = share.input + bytesOf(group * sides_.in.group) +
                          (static_cast<std::ptrdiff_t>(later) * positionsOfStrip() + row) * product.aRow;
    }
    product.fetchAt =
        count == 1 ? stepsAhead * product.bStep : blocks * blockBytes + i * steps * product.fetchLines * rowBytes;
    product.sums = sums;
    progress.side = 1 - progress.side;
    Chores chores{&progress.deliver[progress.side], progress.areInTiles, nullptr, 0};
    progress.areInTiles = kernels_.storeSums != nullptr && tiles * blocks == 4;
    if (progress.next != nullptr) {
      chores.split = &progress.next->work();
      const std::size_t left = std::max<std::size_t>(1, progress.cost / costOfStrip(job));
      chores.splitRows = ceilDivide(progress.next->rowsLeft(), static_cast<int>(left));
      progress.next->count(chores.splitRows);
    }
    kernels_.multiply[tiles][blocks](product, chores);
    progress.cost -= std::min(progress.cost, costOfStrip(job));
  }
}

void Bf16x3Products::multiply(const Share& share, Progress& progress) const {
  std::size_t before = 0;  // cost of the jobs and sets before
  std::optional<RowMaking> next;
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    const std::size_t all = stripsOf(share.part, jobs_[job]), each = costOfStrip(job);
    for (std::size_t first = 0; first < all; first += stripsAtOnce_) {
      const std::size_t strips = std::min(stripsAtOnce_, all - first);
      const std::byte* rows = share.input;
      if (copiesStrips_) {
        const std::size_t end = before + columnSetsOfAll() * strips * each;
        if (end <= share.costs.from || before >= share.costs.to) {
          before = end;
          continue;
        }
        const auto rowsOf = [&](std::size_t from) {
          std::byte* const to = share.strips[from / stripsAtOnce_ % 2];
          return makeRows(share.input, to, share.index, runsFrom(share.index, from));
        };
        RowMaking now = next ? *next : rowsOf(first);
        now.finish();
        next.reset();
        if (first + strips < all && end < share.costs.to) next.emplace(rowsOf(first + strips));
        progress.next = next ? &*next : nullptr;
        progress.cost = end - std::max(before, share.costs.from);
        rows = share.strips[first / stripsAtOnce_ % 2] -
               static_cast<std::ptrdiff_t>(first) * positionsOfStrip() * rowBytes;
      }
      // A strip belongs to the share where its cost begins.
      const auto stripAt = [&](std::size_t cost) {
        return first + (cost <= before ? 0 : std::min(strips, (cost - before + each - 1) / each));
      };
      for (std::size_t set = 0; set < columnSetsOfAll(); ++set, before += strips * each) {
        const TaskPart mine{stripAt(share.costs.from), stripAt(share.costs.to)};
        if (!mine.isEmpty()) multiplyStrips(share, job, set, mine, rows, progress);
      }
    }
  }
  if (copiesStrips_) progress.next = nullptr;
}

std::size_t Bf16x3Products::stripsOf(const Bf16x3Image::Part& part, const Bf16x3Job& job) const {
  const int positions = image_.positions(part, job.outHeight, job.outWidth);
  return static_cast<std::size_t>(ceilDivide(positions, positionsOfStrip()));
}

std::size_t Bf16x3Products::costOf(const Bf16x3Image::Part& part) const {
  std::size_t cost = 0;
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    cost += columnSetsOfAll() * stripsOf(part, jobs_[job]) * costOfStrip(job);
  }
  return cost;
}

Bf16x3Products::Memory Bf16x3Products::memoryOf(const Buffers& buffers, int worker) const {
  std::byte* const memory =
      static_cast<std::byte*>(buffers.workspace) + biasBytes() + static_cast<std::size_t>(worker) * workerBytes();
  std::byte* const split = memory + sumsBytes + sizeof(Held);
  return {reinterpret_cast<float*>(memory), reinterpret_cast<Held*>(memory + sumsBytes), {split, split + splitBytes()}};
}

/// Null where it ends with the tensor. What is in rows behind the last position reaches sums of their own only, which
/// nobody delivers.
const std::byte* Bf16x3Products::copyLastStrip(int part, const std::byte* tensor, std::byte* to) const {
  if (image_.positions(image_.part(part), jobs_[0].outHeight, jobs_[0].outWidth) % tileRows == 0) return nullptr;
  makeRows(tensor, to, part, lastRuns_).finish();
  return to;
}

/// Every worker splits what it multiplies, so that nobody waits and nothing goes from core to core: whole parts where
/// there are enough of them, else all of a part for a share of its strips.
void Bf16x3Products::run(const Buffers& buffers, const TaskExecutor& executor) const {
  const float* const bias = paddedBias(description_, buffers);
  const auto* const input =
      reinterpret_cast<const std::byte*>(sides_.isForward ? buffers.input : buffers.outputGradient);
  const auto workers = static_cast<std::size_t>(executor.workers());
  const auto parts = static_cast<std::size_t>(image_.parts());
  const std::size_t tasksWanted = workers == 1 ? 1 : 2 * workers;
  const std::size_t shares = std::min((tasksWanted + parts - 1) / parts, costOf(image_.part(0)));
  const std::size_t tasks = std::min(tasksWanted, parts * shares);
  for (int worker = 0; worker < executor.workers(); ++worker) *memoryOf(buffers, worker).held = {{-1, -1}};
  executor.forEach(tasks, [&](std::size_t task, int worker) {
    const Memory memory = memoryOf(buffers, worker);
    const TaskPart mine = partOf(parts * shares, tasks, task);
    Progress progress;
    (readsHalves_ ? kernels_.beginHalves : kernels_.begin)();
    for (std::size_t at = mine.from; at < mine.to;) {
      const std::size_t part = at / shares, end = std::min(mine.to, (part + 1) * shares);
      const int index = static_cast<int>(part), side = index % 2;
      const Bf16x3Image::Part here = image_.part(index);
      const std::size_t cost = costOf(here);
      const TaskPart first = partOf(cost, shares, at % shares), last = partOf(cost, shares, (end - 1) % shares);
      Share share{.buffers = buffers,
                  .bias = bias,
                  .input = memory.split[side],
                  .last = nullptr,
                  .strips = {memory.split[0], memory.split[1]},
                  .sums = memory.sums,
                  .index = index,
                  .part = here,
                  .costs = {first.from, last.to}};
      at = end;
      if (copiesStrips_) {
        share.input = input;
        multiply(share, progress);
        continue;
      }
      if (readsInPlace_) {
        share.input = input + bytesOf(here.image * sides_.in.image + here.line * lineNumbers());
        if (index + 1 == image_.parts()) share.last = copyLastStrip(index, input, memory.split[0]);
        multiply(share, progress);
        continue;
      }
      int& held = memory.held->parts[side];
      if (held != index) makeRows(input, memory.split[side], index).finish();
      held = index;
      if (end < mine.to) {
        RowMaking next = makeRows(input, memory.split[1 - side], index + 1);
        progress.next = &next;
        progress.cost = last.to - first.from;
        multiply(share, progress);
        progress.next = nullptr;
        next.finish();
        memory.held->parts[1 - side] = index + 1;
      } else {
        multiply(share, progress);
      }
    }
    DeliverWork& last = progress.deliver[1 - progress.side];
    if (progress.areInTiles) kernels_.storeSums(last.sums);
    kernels_.deliver(last);
    kernels_.end();
  });
}

}  // namespace

bool servesSplitProducts(const Description& given) {
  const Description d = withJoinedGroups(given);
  if (d.pass == taccConvBackwardWeights || !canSplit(d)) return false;
  if (d.algorithm == "split" || d.pairs.areRead) return true;
  // Where few channels are written, splitting is not worth while.
  const std::vector<Bf16x3Job> jobs = splitJobs(d);
  return splitCycles(d, splitImage(d, jobs), jobs) < d.shape.operations() / 2 / plainProductsInCycle;
}

std::unique_ptr<ConvPlan> makeSplitProducts(const Description& d, const KernelSet& kernels) {
  return std::make_unique<Bf16x3Products>(withJoinedGroups(d), groupsJoined(d),
                                          d.pairs.areRead ? *kernels.split->ofBfloat16 : *kernels.split);
}

}  // namespace tacc::conv
