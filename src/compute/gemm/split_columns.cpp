#include "compute/gemm/split_columns.hpp"

#include <algorithm>

#include "compute/conv/amx/bf16x3_jobs.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/gemm/gemm_prices.hpp"

namespace tacc::gemm {
namespace {

using conv::blockLength;
using conv::ceilDivide;
using conv::roundUp;
using conv::rowBytes;
using conv::splitParts;
using conv::tileBytes;
using conv::tileFloats;
using conv::tileRows;

constexpr int pairLength = 2 * blockLength;  // values of a row that are a step of a sum
constexpr int setBlocks = 2;                 // blocks of columns that are computed together,
constexpr int stripRows = 2 * tileRows;      // for that many rows
constexpr std::ptrdiff_t splitTileBytes = splitParts * tileBytes;

/// Pairs of one piece: of rows that are longer the sums go through C.
constexpr int fewestPairs = 16, mostPairs = 64;

constexpr std::size_t sumsBytes = 2 * 4 * static_cast<std::size_t>(tileBytes);  // two sets: one is delivered

}  // namespace

/// From strip to strip of a task.
struct SplitColumns::Progress {
  conv::DeliverWork deliver[2];  // of the strip before and of this one, in turn
  int side = 0;
  std::size_t cost = 0;       // that is left of this piece
  Splitting* next = nullptr;  // or null
};

SplitColumns::SplitColumns(const Description& d, int columns, const conv::Bf16x3Kernels& kernels,
                           const layers::LayerKernels& transposing)
    : d_(d), columns_(columns), kernels_(kernels), transposing_(transposing) {
  // Many parts read B over again from behind the L2 cache, and the first one's splitting nothing hides; many pieces of
  // a row read and write C over again.
  double best = 0;
  int bestParts = 1;
  for (int most = mostPairs; most >= fewestPairs; most /= 2) {
    const int pairsAtOnce = ceilDivide(pairs(), ceilDivide(pairs(), most));
    const std::size_t bytesOfRow = static_cast<std::size_t>(pairsAtOnce) * rowBytes * splitParts;
    const int mostRows = std::max(stripRows, static_cast<int>(conv::l2CacheBytes() * 3 / 8 / bytesOfRow));
    const int mostParts = ceilDivide(d.m, stripRows);
    for (int parts = ceilDivide(d.m, mostRows); parts <= mostParts; parts = std::max(parts + 1, parts * 5 / 4)) {
      const double cycles = cyclesFor(parts, pairsAtOnce);
      if (best != 0 && cycles >= best) continue;
      best = cycles;
      bestParts = parts;
      pairsAtOnce_ = pairsAtOnce;
    }
  }
  chunks_ = ceilDivide(pairs(), pairsAtOnce_);
  rowsAtOnce_ = roundUp(ceilDivide(d.m, bestParts), stripRows);
  parts_ = ceilDivide(d.m, rowsAtOnce_);
  fetchesB_ = !conv::staysInL2(static_cast<std::size_t>(packedBytes()));
  for (int pair = 0; pair < pairsAtOnce_; ++pair) steps_.push_back(pair * pairStep());
  for (int row = 0; row < rowsAtOnce_; ++row) outputs_.push_back(row * d.ldc);
}

int SplitColumns::pairs() const { return ceilDivide(d_.k, pairLength); }
int SplitColumns::sets() const { return ceilDivide(columns_ / blockLength, setBlocks); }

SplitColumns::Piece SplitColumns::piece(int index) const {
  const int row = index / chunks_ * rowsAtOnce_, pair = index % chunks_ * pairsAtOnce_;
  return {row, std::min(rowsAtOnce_, d_.m - row), pair, std::min(pairsAtOnce_, pairs() - pair)};
}

double SplitColumns::packedBytes() const {
  const int blocks = columns_ / blockLength;
  return double(pairs()) * blocks * static_cast<double>(splitTileBytes);
}
std::size_t SplitColumns::packedFloats() const { return static_cast<std::size_t>(packedBytes()) / sizeof(float); }

std::size_t SplitColumns::splitBytes() const {
  return static_cast<std::size_t>(pairStep()) * static_cast<std::size_t>(pairsAtOnce_);
}
bool SplitColumns::copiesPairs() const { return d_.transposeA || d_.k % pairLength != 0; }
std::size_t SplitColumns::copyBytes() const {
  return copiesPairs() ? static_cast<std::size_t>(rowsAtOnce_) * pairLength * sizeof(float) : 0;
}
std::size_t SplitColumns::workerBytes() const {
  const std::size_t sides = pieces() > 1 ? 2 : 1;
  return sumsBytes + sides * (splitBytes() + copyBytes());
}
std::size_t SplitColumns::workspaceBytes(int workers) const {
  return static_cast<std::size_t>(workers) * workerBytes();
}

double SplitColumns::cyclesFor(int parts, int pairsAtOnce) const {
  const int blocks = columns_ / blockLength;
  // A last block that is alone reads as much for half of the products.
  const double columns = blocks + 0.4 * (blocks % 2);
  const double rows = roundUp(ceilDivide(d_.m, parts), stripRows);
  constexpr double copyRowCycles = 30;  // of a row of a pair that is not whole in A
  const double splitRow =
      conv::splitRowCycles(double(d_.m) * d_.k * sizeof(float)) + (copiesPairs() ? copyRowCycles : 0);
  const double split = rows * pairs() * splitRow;
  const bool staysInL2 = conv::staysInL2(static_cast<std::size_t>(rows * columns_ * sizeof(float)));
  const double deliverAgain =
      conv::deliverTileCycles + (staysInL2 ? 0 : 2 * static_cast<double>(tileBytes) / conv::bytesInCycle);
  const double deliver = conv::deliverTileCycles + (ceilDivide(pairs(), pairsAtOnce) - 1) * deliverAgain;
  const double products = rows / tileRows * columns * (6.0 * pairs() * conv::tileProductCycles + deliver);
  double cycles = split / 3 + parts * (split + products);
  if (!conv::staysInL2(static_cast<std::size_t>(packedBytes()))) {
    const double ofMemory = packedBytes() / conv::bytesInCycle;
    cycles = std::max(cycles + (parts - 0.5) * ofMemory, 2 * parts * ofMemory);
  }
  return cycles;
}

double SplitColumns::cycles() const {
  constexpr LineCycles ofResults{0, 10, 27};  // as measured on an Emerald Rapids
  return withResults(cyclesFor(parts_, pairsAtOnce_), d_, columns_, ofResults);
}

void SplitColumns::pack(const float* b, float* packed) const {
  const conv::Bf16x3Run rows{0, 0, blockLength};
  conv::Bf16x3Work work{
      .run = &rows, .end = &rows + 1, .rows = blockLength, .fetchRun = &rows + 1, .partStep = tileBytes};
  alignas(64) float gathered[pairLength * blockLength];
  const auto packTile = [&](int pair, int block) {
    const int row = pair * pairLength, count = std::min(pairLength, d_.k - row);
    const std::ptrdiff_t column = std::ptrdiff_t{block} * blockLength;
    const bool isInPlace = !d_.transposeB && count == pairLength;
    const float* from = gathered;
    if (isInPlace) {
      from = b + row * d_.ldb + column;
    } else {
      if (count < pairLength) std::fill_n(gathered, pairLength * blockLength, 0.0F);
      if (d_.transposeB) {
        transposing_.transpose(b + column * d_.ldb + row, d_.ldb, blockLength, count, gathered, blockLength, false);
      } else {
        for (int i = 0; i < count; ++i)
          std::copy_n(b + (row + i) * d_.ldb + column, blockLength, gathered + i * blockLength);
      }
    }
    work.at = 0;
    work.run = &rows;
    work.even = from;
    work.evenStep = work.oddStep = isInPlace ? d_.ldb : blockLength;
    work.odd = from + blockLength * work.oddStep;
    work.output = reinterpret_cast<std::byte*>(packed) + placeOfTile(pair, block);
    kernels_.split(work, blockLength);
  };
  // Memory is read along its rows: of a transposed B for some pairs, else for all columns.
  const int pairsTogether = d_.transposeB ? 8 : 1;
  for (int first = 0; first < pairs(); first += pairsTogether) {
    for (int block = 0; block < columns_ / blockLength; ++block) {
      for (int pair = first; pair < std::min(first + pairsTogether, pairs()); ++pair) packTile(pair, block);
    }
  }
}

/// Some pairs at a time, of these some blocks at a time, and of these pair after pair.
std::ptrdiff_t SplitColumns::placeOfTile(int pair, int block) const {
  const int blocks = columns_ / blockLength;
  const int first = pair / pairsAtOnce_ * pairsAtOnce_, pairsHere = std::min(pairsAtOnce_, pairs() - first);
  const int set = block / setBlocks * setBlocks, blocksHere = std::min(setBlocks, blocks - set);
  const std::ptrdiff_t tile =
      std::ptrdiff_t{first} * blocks + std::ptrdiff_t{set} * pairsHere + (pair - first) * blocksHere + block - set;
  return tile * splitTileBytes;
}

/// The work of splitting one piece, a pair after the other.
class SplitColumns::Splitting {
 public:
  Splitting(const SplitColumns& plan, const float* a, const Piece& piece, std::byte* to)
      : plan_(plan),
        from_(a + piece.row * (plan.d_.transposeA ? 1 : plan.d_.lda)),
        piece_(piece),
        to_(to),
        run_{0, 0, piece.rows} {
    rows_ = roundUp(piece.rows, stripRows);
    left_ = rows_ * piece.pairs;
    load();
  }
  Splitting(const Splitting&) = delete;
  Splitting& operator=(const Splitting&) = delete;

  /// The next rows of one pair; those of the next one come with the next call.
  conv::Bf16x3Work& work() {
    if (work_.at == work_.rows && pair_ < piece_.pairs) {
      ++pair_;
      load();
    }
    return work_;
  }
  /// About.
  int rowsLeft() const { return left_; }
  void count(int rows) { left_ = std::max(0, left_ - rows); }
  void finish() {
    while (pair_ < piece_.pairs) plan_.kernels_.split(work(), rows_);
  }

 private:
  void load() {
    if (pair_ >= piece_.pairs) return;
    const std::ptrdiff_t first = std::ptrdiff_t{piece_.pair + pair_} * pairLength;
    const bool isTail = first + pairLength > plan_.d_.k;
    const bool isCopied = isTail || plan_.d_.transposeA;
    const std::ptrdiff_t step = isCopied ? pairLength : plan_.d_.lda;
    const float* const values = isCopied ? copyOfPair(first) : from_ + first;
    work_ = {.run = &run_,
             .end = &run_ + 1,
             .rows = rows_,
             .fetchRun = &run_,
             .even = values,
             .odd = values + blockLength,
             .evenStep = step,
             .oddStep = step,
             .output = to_ + pair_ * plan_.pairStep(),
             .partStep = plan_.partStep()};
  }
  /// The rows' values from `first` on, with zeros behind the last ones.
  const float* copyOfPair(std::ptrdiff_t first) const {
    const Description& d = plan_.d_;
    auto* const copy = reinterpret_cast<float*>(to_ + plan_.splitBytes());
    const std::ptrdiff_t count = std::min<std::ptrdiff_t>(pairLength, d.k - first);
    if (d.transposeA) {
      plan_.transposing_.transpose(from_ + first * d.lda, d.lda, static_cast<int>(count), piece_.rows, copy, pairLength,
                                   false);
    } else {
      for (int row = 0; row < piece_.rows; ++row)
        std::copy_n(from_ + row * d.lda + first, count, copy + row * pairLength);
    }
    if (count == pairLength) return copy;
    for (int row = 0; row < piece_.rows; ++row)
      std::fill(copy + row * pairLength + count, copy + (row + 1) * pairLength, 0.0F);
    return copy;
  }

  const SplitColumns& plan_;
  const float* from_;
  Piece piece_;
  std::byte* to_;
  conv::Bf16x3Run run_;
  int pair_ = 0, rows_, left_;
  conv::Bf16x3Work work_;
};

void SplitColumns::multiply(const Matrices& matrices, const Piece& piece, const std::byte* split, int firstSet,
                            int endSet, float* sums, Progress& progress) const {
  const int blocksOfAll = columns_ / blockLength;
  const bool isFirst = piece.pair == 0, isLast = piece.pair + piece.pairs == pairs();
  const int strips = ceilDivide(piece.rows, stripRows);
  const auto* const packed =
      reinterpret_cast<const std::byte*>(matrices.packed) + std::ptrdiff_t{piece.pair} * blocksOfAll * splitTileBytes;
  conv::ProductCall product{};
  product.aRow = rowBytes;
  product.aPart = partStep();
  product.aTile = tileBytes;
  product.aSteps = steps_.data();
  product.bPart = tileBytes;
  product.bTile = splitTileBytes;
  product.steps = piece.pairs;
  for (int set = firstSet; set < endSet; ++set) {
    const int block = set * setBlocks, blocks = std::min(setBlocks, blocksOfAll - block);
    const std::ptrdiff_t setBytes = std::ptrdiff_t{piece.pairs} * blocks * splitTileBytes;
    float* const output = matrices.c + piece.row * d_.ldc + std::ptrdiff_t{block} * blockLength;
    product.b = packed + std::ptrdiff_t{block} * piece.pairs * splitTileBytes;
    product.bStep = blocks * splitTileBytes;
    // A strip brings its share of the next columns, which are behind the L2 cache.
    if (fetchesB_) product.fetchLines = ceilDivide(blocks * splitParts * tileRows, strips);
    for (int strip = 0; strip < strips; ++strip) {
      const int row = strip * stripRows, rows = std::min(stripRows, piece.rows - row);
      product.a = split + row * rowBytes;
      product.fetchAt = setBytes + std::ptrdiff_t{strip} * piece.pairs * product.fetchLines * rowBytes;
      product.sums = sums + progress.side * 4 * tileFloats;
      progress.deliver[progress.side] = {
          .sums = product.sums,
          .positions = rows,
          .blocks = blocks,
          .outputs = outputs_.data() + row,
          .bias = isFirst && matrices.bias != nullptr ? matrices.bias + std::ptrdiff_t{block} * blockLength : nullptr,
          .addend = !isFirst || d_.accumulate ? output : nullptr,
          .output = output,
          .outputBlock = blockLength,
          .activation = isLast && d_.relu ? taccActivationRelu : taccActivationNone};
      progress.side = 1 - progress.side;
      conv::Chores chores{&progress.deliver[progress.side], false, nullptr, 0};
      if (progress.next != nullptr) {
        chores.split = &progress.next->work();
        chores.splitRows = ceilDivide(progress.next->rowsLeft(), std::max(1, static_cast<int>(progress.cost)));
        progress.next->count(chores.splitRows);
      }
      kernels_.multiply[ceilDivide(rows, tileRows)][blocks](product, chores);
      progress.cost -= std::min<std::size_t>(progress.cost, 1);
    }
  }
}

/// Every worker splits what it multiplies, so that nobody waits: whole pieces where there are enough of them, else all
/// of one for a share of the columns. The pieces of a row follow each other in one task, as their sums do.
void SplitColumns::run(const Matrices& matrices, const conv::TaskExecutor& executor) const {
  const auto workers = static_cast<std::size_t>(executor.workers());
  const std::size_t wanted = workers == 1 ? 1 : 2 * workers;
  const auto parts = static_cast<std::size_t>(parts_), allSets = static_cast<std::size_t>(sets());
  const std::size_t rowTasks = std::min(parts, wanted);
  const std::size_t setTasks = std::min(allSets, (wanted + rowTasks - 1) / rowTasks);
  executor.forEach(rowTasks * setTasks, [&](std::size_t index, int worker) {
    std::byte* const memory = matrices.workspace + static_cast<std::size_t>(worker) * workerBytes();
    auto* const sums = reinterpret_cast<float*>(memory);
    const auto side = [&](int which) {
      return memory + sumsBytes + static_cast<std::size_t>(which % 2) * (splitBytes() + copyBytes());
    };
    const conv::TaskPart mine = conv::partOf(parts, rowTasks, index / setTasks);
    const conv::TaskPart columns = conv::partOf(allSets, setTasks, index % setTasks);
    const int end = static_cast<int>(mine.to) * chunks_;
    int at = static_cast<int>(mine.from) * chunks_;
    Progress progress;
    kernels_.begin();
    Splitting(*this, matrices.a, piece(at), side(0)).finish();
    for (int which = 0; at < end; ++at, ++which) {
      const auto multiplyAll = [&] {
        multiply(matrices, piece(at), side(which), static_cast<int>(columns.from), static_cast<int>(columns.to), sums,
                 progress);
      };
      if (at + 1 == end) {
        multiplyAll();
        continue;
      }
      Splitting next(*this, matrices.a, piece(at + 1), side(which + 1));
      progress.next = &next;
      progress.cost = (columns.to - columns.from) * static_cast<std::size_t>(ceilDivide(piece(at).rows, stripRows));
      multiplyAll();
      progress.next = nullptr;
      next.finish();
    }
    kernels_.deliver(progress.deliver[1 - progress.side]);
    kernels_.end();
  });
}

}  // namespace tacc::gemm
