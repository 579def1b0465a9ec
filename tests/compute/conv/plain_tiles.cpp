#include "plain_tiles.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "compute/conv/activation.hpp"
#include "compute/conv/amx/bf16x3.hpp"

namespace tacc::conv::test {
namespace {

/// Two bfloat16, the first one in the lower half.
using Word = std::uint32_t;

float lowerOf(Word word) { return std::bit_cast<float>(word << 16); }
float upperOf(Word word) { return std::bit_cast<float>(word & 0xFFFF0000U); }
/// The upper halves of both, of which the second one stays where it is.
Word joined(Word first, Word second) { return (second & 0xFFFF0000U) | first >> 16; }

float valueOf(float number) { return number; }
float valueOf(std::uint16_t number) { return lowerOf(number); }

/// The number in so many parts, each in the upper half of a word.
std::array<Word, splitParts> partsOf(float number) {
  const auto high = std::bit_cast<Word>(number) & 0xFFFF0000U;
  const float rest = number - std::bit_cast<float>(high);
  const Word middle = (std::bit_cast<Word>(rest) + 0x8000U) & 0xFFFF0000U;
  return {high, middle, std::bit_cast<Word>(rest - std::bit_cast<float>(middle))};
}
std::array<Word, 1> partsOf(std::uint16_t number) { return {Word{number} << 16}; }

template <class Number>
constexpr int partsOfKind = std::is_same_v<Number, float> ? splitParts : 1;

/// `kCopies`: channels that follow each other are pairs, not those of two blocks.
template <class Number, bool kCopies>
void split(Bf16x3Work& work, int rows) {
  const std::ptrdiff_t limit = std::min(work.at + rows, work.rows);
  for (; work.at < limit; ++work.at) {
    while (work.run != work.end && work.run->row + work.run->rows <= work.at) ++work.run;
    const bool isPixel = work.run != work.end && work.run->row <= work.at;
    if (!isPixel && work.leavesGaps) continue;
    const std::ptrdiff_t from = isPixel ? work.at - work.run->row : 0, source = isPixel ? work.run->source : 0;
    /// Number i of the first block, or of the second one from 16 on.
    const auto numberAt = [&](int i) -> Number {
      const bool isOdd = i >= blockLength;
      const int lane = i % blockLength;
      if (!isPixel || ((isOdd ? work.oddMask : work.evenMask) >> lane & 1) == 0) return {};
      if ((work.run->lanes >> (work.firstLane + i) & 1) == 0) return {};
      if (!isOdd) return static_cast<const Number*>(work.even)[source + from * work.evenStep + lane];
      return static_cast<const Number*>(work.odd)[work.oddStep == 0 ? lane : source + from * work.oddStep + lane];
    };
    for (int i = 0; i < blockLength; ++i) {
      const auto first = partsOf(numberAt(kCopies ? 2 * i : i));
      const auto second = partsOf(numberAt(kCopies ? 2 * i + 1 : blockLength + i));
      for (std::size_t part = 0; part < first.size(); ++part) {
        std::byte* const row = work.output + static_cast<std::ptrdiff_t>(part) * work.partStep + work.at * rowBytes;
        reinterpret_cast<Word*>(row)[i] = joined(first[part], second[part]);
      }
    }
  }
}

/// Pairs of the even, or of the odd, of the numbers of two rows.
Word pairOfRows(const std::byte* rows, int word, bool isOdd) {
  const Word first = reinterpret_cast<const Word*>(rows)[word];
  const Word second = reinterpret_cast<const Word*>(rows + rowBytes)[word];
  return isOdd ? joined(first, second) : (first & 0xFFFF) | second << 16;
}

template <class Number, bool kTransposes>
void regroup(const RegroupCall& call) {
  for (int part = 0; part < partsOfKind<Number>; ++part) {
    for (const bool isOdd : {false, true}) {
      std::byte* const output = isOdd ? call.odd : call.even;
      if (output == nullptr) continue;
      auto* const to = reinterpret_cast<Word*>(output + part * call.outputPart);
      for (int i = 0; i < tileRows; ++i) {
        for (int word = 0; word < blockLength; ++word) {
          const Word pair = pairOfRows(call.rows + part * call.rowsPart + 2 * i * rowBytes, word, isOdd);
          to[kTransposes ? word * blockLength + i : i * blockLength + word] = pair;
        }
      }
    }
  }
}

void turn(const float* sums, int rows, int columns, float* turned) {
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      const float* const from = sums + (m * columns + n) * tileFloats;
      float* const to = turned + (n * rows + m) * tileFloats;
      for (int i = 0; i < tileFloats; ++i) to[i % blockLength * blockLength + i / blockLength] = from[i];
    }
  }
}

void store(float& to, float value) { to = value; }
void store(std::uint16_t& to, float value) {
  const auto bits = std::bit_cast<Word>(value);
  to = static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

template <class Number>
void deliver(DeliverWork& work) {
  for (; work.block < work.blocks; ++work.block, work.position = 0) {
    for (; work.position < work.positions; ++work.position) {
      const std::ptrdiff_t at = work.outputs[work.position] + work.block * work.outputBlock;
      if (work.outputs[work.position] < 0) continue;
      const int tile = work.position / tileRows * work.blocks + work.block;
      const float* const sums = work.sums + tile * tileFloats + work.position % tileRows * blockLength;
      for (int i = 0; i < blockLength; ++i) {
        if (work.block + 1 == work.blocks && (work.lastMask >> i & 1) == 0) continue;
        float value = sums[i] + (work.bias != nullptr ? work.bias[work.block * blockLength + i] : 0);
        if (work.addend != nullptr) value += valueOf(static_cast<const Number*>(work.addend)[at + i]);
        store(static_cast<Number*>(work.output)[at + i], applyActivation(work.activation, value));
      }
    }
  }
}

/// Of a row, as begin() or beginHalves() says.
thread_local int pairsOfRow = blockLength;

/// sums += a * b, of one pair of tiles: their products are added up before they touch the sums, as AMX does.
void multiplyTiles(const std::byte* a, std::ptrdiff_t aRow, const std::byte* b, float* sums) {
  for (int row = 0; row < tileRows; ++row) {
    for (int column = 0; column < blockLength; ++column) {
      float even = 0, odd = 0;
      for (int k = 0; k < pairsOfRow; ++k) {
        const Word x = reinterpret_cast<const Word*>(a + row * aRow)[k];
        const Word y = reinterpret_cast<const Word*>(b + k * rowBytes)[column];
        even += lowerOf(x) * lowerOf(y);
        odd += upperOf(x) * upperOf(y);
      }
      sums[row * blockLength + column] += even + odd;
    }
  }
}

/// Sums that stay in the tiles from call to call.
thread_local std::array<float, 4 * tileFloats> tiles{};

void storeSums(float* sums) { std::copy(tiles.begin(), tiles.end(), sums); }

template <class Number, bool kCopies, int kRows, int kColumns>
void multiply(const ProductCall& call, const Chores& chores) {
  constexpr int parts = partsOfKind<Number>;
  if (chores.areInTiles) storeSums(chores.deliver->sums);
  deliver<Number>(*chores.deliver);
  if (chores.splitRows > 0) split<Number, kCopies>(*chores.split, chores.splitRows);
  std::fill_n(call.sums, 4 * tileFloats, 0.0F);
  for (int step = 0; step < call.steps; ++step) {
    for (int ofB = 0; ofB < parts; ++ofB) {
      for (int ofA = 0; ofA < parts - ofB; ++ofA) {
        for (int m = 0; m < kRows; ++m) {
          for (int n = 0; n < kColumns; ++n) {
            multiplyTiles(call.a + call.aSteps[step] + ofA * call.aPart + m * call.aTile, call.aRow,
                          call.b + step * call.bStep + ofB * call.bPart + n * call.bTile,
                          call.sums + (m * kColumns + n) * tileFloats);
          }
        }
      }
    }
  }
  if (parts > 1 || kRows * kColumns != 4) return;
  std::copy_n(call.sums, tiles.size(), tiles.begin());
  std::fill_n(call.sums, tiles.size(), std::numeric_limits<float>::quiet_NaN());
}

template <class Number, bool kCopies>
constexpr Bf16x3Kernels tableOf(const Bf16x3Kernels* ofBfloat16, const Bf16x3Kernels* ofGradients) {
  return {partsOfKind<Number>,
          sizeof(Number),
          split<Number, kCopies>,
          regroup<Number, false>,
          regroup<Number, true>,
          turn,
          [] { pairsOfRow = blockLength; },
          [] { pairsOfRow = blockLength / 2; },
          [] {},
          {{},
           {nullptr, multiply<Number, kCopies, 1, 1>, multiply<Number, kCopies, 1, 2>},
           {nullptr, multiply<Number, kCopies, 2, 1>, multiply<Number, kCopies, 2, 2>},
           {nullptr, multiply<Number, kCopies, 3, 1>, nullptr},
           {nullptr, multiply<Number, kCopies, 4, 1>, nullptr}},
          deliver<Number>,
          partsOfKind<Number> == 1 ? storeSums : nullptr,
          ofBfloat16,
          ofGradients};
}

}  // namespace

const KernelSet& plainTileKernels() {
  static constexpr Bf16x3Kernels ofBfloat16 = tableOf<std::uint16_t, true>(nullptr, nullptr);
  static constexpr Bf16x3Kernels ofGradients = tableOf<std::uint16_t, false>(nullptr, nullptr);
  static constexpr Bf16x3Kernels tiles = tableOf<float, false>(&ofBfloat16, &ofGradients);
  static const KernelSet set = [] {
    KernelSet portable = portableKernels();
    portable.isa = "plain tiles";
    portable.split = &tiles;
    return portable;
  }();
  return set;
}

}  // namespace tacc::conv::test
