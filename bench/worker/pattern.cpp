#include "worker/pattern.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/element.hpp"

namespace tacc::bench {
namespace {

/// Values of data that is moved or compared: exact in every type.
constexpr unsigned movedModulus = 113;
constexpr unsigned largestSummand = 16;

/// Keeps sum over ranks of (modulus - 1) exact in `type`.
unsigned chooseModulus(taccDataType_t type, std::optional<taccRedOp_t> op, int ranks) {
  if (op != taccSum && op != taccAvg) return movedModulus;
  const double exact = std::ldexp(1.0, std::min(exactBits(type), 30)) - 1;
  return std::clamp(static_cast<unsigned>(exact / ranks) + 1, 2U, largestSummand);
}

unsigned scramble(unsigned rank, unsigned position) {
  unsigned x = position * 0x9e3779b1U + (rank + 1) * 0x85ebca6bU;
  x = (x ^ (x >> 15)) * 0x2c1b3c6dU;
  return x ^ (x >> 13);
}

}  // namespace

Pattern::Pattern(taccDataType_t type, std::optional<taccRedOp_t> op, int ranks, int self)
    : type_(type), op_(op), ranks_(ranks), elementSize_(elementSize(type)), modulus_(chooseModulus(type, op, ranks)) {
  std::vector<int> ends;  // of the reductions, in the order of their sources
  if (op) ends = {ranks, self + 1};
  if (op && self > 0) ends.push_back(self);
  const int tableCount = ranks + static_cast<int>(ends.size());
  tables_.resize(static_cast<size_t>(tableCount) * period * elementSize_);
  for (int source = 0; source < tableCount; ++source)
    for (size_t i = 0; i < period; ++i)
      storeElement(type, source < ranks ? input(source, i) : reduce(i, ends[static_cast<size_t>(source - ranks)]),
                   &tables_[(static_cast<size_t>(source) * period + i) * elementSize_]);
}

double Pattern::input(int rank, size_t position) const {
  // Of the factors of a product at most three are 2, so it is exact in every type.
  if (op_ == taccProd) return (position + static_cast<size_t>(rank)) % static_cast<size_t>(ranks_) < 3 ? 2 : 1;
  return scramble(static_cast<unsigned>(rank), static_cast<unsigned>(position)) % modulus_;
}

double Pattern::reduce(size_t position, int end) const {
  double result = input(0, position);
  for (int rank = 1; rank < end; ++rank) {
    const double value = input(rank, position);
    switch (*op_) {
      case taccProd:
        result *= value;
        break;
      case taccMax:
        result = std::max(result, value);
        break;
      case taccMin:
        result = std::min(result, value);
        break;
      default:
        result += value;
        break;
    }
  }
  return op_ == taccAvg ? result / ranks_ : result;
}

const char* Pattern::table(int source) const {
  return &tables_[static_cast<size_t>(source < 0 ? ranks_ + reduced - source : source) * period * elementSize_];
}

void Pattern::fill(void* at, size_t count, size_t firstIndex, int source) const {
  char* out = static_cast<char*>(at);
  for (size_t done = 0; done < count;) {
    const size_t position = (firstIndex + done) % period;
    const size_t run = std::min(count - done, period - position);
    std::memcpy(out + done * elementSize_, table(source) + position * elementSize_, run * elementSize_);
    done += run;
  }
}

int64_t Pattern::countWrong(const void* at, size_t count, size_t firstIndex, int source) const {
  const char* actual = static_cast<const char*>(at);
  int64_t wrong = 0;
  for (size_t done = 0; done < count;) {
    const size_t position = (firstIndex + done) % period;
    const size_t run = std::min(count - done, period - position);
    const char* here = actual + done * elementSize_;
    const char* expected = table(source) + position * elementSize_;
    if (std::memcmp(here, expected, run * elementSize_) != 0) wrong += countWrongElements(here, expected, run);
    done += run;
  }
  return wrong;
}

int64_t Pattern::countWrongElements(const char* actual, const char* expected, size_t count) const {
  const double tolerance = op_ == taccAvg && isFloating(type_) ? std::ldexp(2.0, 1 - exactBits(type_)) : 0.0;
  int64_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    const double is = loadElement(type_, actual + i * elementSize_);
    const double shouldBe = loadElement(type_, expected + i * elementSize_);
    // Written so that a NaN is wrong.
    if (!(std::fabs(is - shouldBe) <= tolerance * std::fabs(shouldBe))) ++wrong;
  }
  return wrong;
}

}  // namespace tacc::bench
