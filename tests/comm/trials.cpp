#include "trials.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "elements.hpp"
#include "rank_harness.hpp"
#include "support/collective_contract.hpp"

namespace tacc::test {

namespace {

/// So many elements, and inputOf begins anew: to compute each would take longer than all that is under test.
constexpr std::size_t inputPeriod = 55;

double inputOf(int rank, std::size_t i, int op) {
  const auto mixed = static_cast<int>((static_cast<std::size_t>(rank) * 7 + i * 3 + i / 11) % 5);
  return op == taccProd ? 1 + mixed % 2 : 1 + mixed;
}
double factorOf(int rank) { return rank % 3 + 1; }

Contract contractOf(const Trial& t, int rank, int ranks) { return {t.collective, rank, ranks, t.root, t.count}; }

double reduceAt(const Origin& from, int op) {
  const auto [first, behind, i] = from;
  double result = op == mulSum ? inputOf(first, i, op) * factorOf(first) : inputOf(first, i, op);
  for (int r = first + 1; r < behind; ++r) {
    const double x = inputOf(r, i, op);
    switch (op) {
      case taccProd:
        result *= x;
        break;
      case taccMax:
        result = std::max(result, x);
        break;
      case taccMin:
        result = std::min(result, x);
        break;
      case mulSum:
        result += x * factorOf(r);
        break;
      default:
        result += x;
    }
  }
  return op == taccAvg ? result / (behind - first) : result;
}

std::string nameOfTrial(const Trial& t, int rank, int ranks) {
  return std::string(nameOf(t.collective)) + " " + std::string(nameOf(t.type)) + " op " + std::to_string(t.op) +
         " count " + std::to_string(t.count) + " root " + std::to_string(t.root) + (t.inPlace ? " in place" : "") +
         " rank " + std::to_string(rank) + " of " + std::to_string(ranks);
}

/// What is copied stays as it was sent: factors and divisors belong to reductions.
double valueAt(const Trial& t, const Origin& from) {
  return isReduction(t.collective) ? reduceAt(from, t.op) : inputOf(from.first, from.index, t.op);
}

/// `count` elements, element i being valueAt(i), which repeats as inputOf does.
template <class ValueAt>
void encodeRepeating(taccDataType_t type, std::size_t count, const ValueAt& valueAt, std::byte* to) {
  std::vector<double> values(std::min(count, inputPeriod));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = valueAt(i);
  const auto once = encodeAll(type, values);
  for (std::size_t left = count * sizeOf(type); left > 0;) {
    const std::size_t bytes = std::min(left, once.size());
    to = std::copy_n(once.begin(), bytes, to);
    left -= bytes;
  }
}

std::vector<std::byte> expectedOutput(const Trial& t, int rank, int ranks) {
  const Contract contract = contractOf(t, rank, ranks);
  std::vector<std::byte> output(contract.received() * sizeOf(t.type));
  for (std::size_t begin = 0; begin < contract.received(); begin += t.count)
    encodeRepeating(
        t.type, t.count, [&](std::size_t i) { return valueAt(t, contract.origin(begin + i)); },
        output.data() + begin * sizeOf(t.type));
  return output;
}

/// Library memory that trials use one after the other, as programs do: to make it and to show it to all ranks takes far
/// longer than a small call.
class LibraryBlocks {
 public:
  LibraryBlocks() = default;
  ~LibraryBlocks() {
    for (const auto& [bytes, block] : free_) EXPECT_EQ(taccMemFree(block), taccSuccess);
  }
  LibraryBlocks(const LibraryBlocks&) = delete;
  LibraryBlocks& operator=(const LibraryBlocks&) = delete;

  static std::size_t roundUp(std::size_t bytes) { return std::bit_ceil(bytes); }
  void* take(std::size_t bytes) {
    if (const auto found = free_.find(roundUp(bytes)); found != free_.end()) return free_.extract(found).mapped();
    void* block = nullptr;
    EXPECT_EQ(taccMemAlloc(&block, roundUp(bytes)), taccSuccess);
    return block;
  }
  void giveBack(void* block, std::size_t bytes) { free_.emplace(roundUp(bytes), block); }

 private:
  std::multimap<std::size_t, void*> free_;
};

/// A buffer with guard bytes around it, in private memory or, with `blocks`, in library memory.
class Guarded {
 public:
  Guarded(std::size_t bytes, LibraryBlocks* blocks) : bytes_(bytes), blocks_(blocks) {
    const std::size_t all = bytes + 2 * guard;
    base_ = static_cast<std::byte*>(blocks != nullptr ? blocks->take(all) : std::malloc(all));
    std::fill_n(base_, all, std::byte{0xA5});
  }
  ~Guarded() {
    if (blocks_ != nullptr)
      blocks_->giveBack(base_, bytes_ + 2 * guard);
    else
      std::free(base_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  std::byte* data() { return base_ + guard; }
  bool intact() const {
    const auto clean = [](std::byte b) { return b == std::byte{0xA5}; };
    return std::all_of(base_, base_ + guard, clean) &&
           std::all_of(base_ + guard + bytes_, base_ + bytes_ + 2 * guard, clean);
  }

 private:
  static constexpr std::size_t guard = 64;
  std::size_t bytes_;
  LibraryBlocks* blocks_;
  std::byte* base_;
};

void runTrial(const Trial& t, taccComm_t comm, int rank, int ranks, LibraryBlocks& library) {
  const std::size_t size = sizeOf(t.type);
  const Contract contract = contractOf(t, rank, ranks);
  const std::size_t in = contract.sent(), out = contract.received();

  std::vector<std::byte> input(in * size);
  encodeRepeating(
      t.type, in, [&](std::size_t i) { return inputOf(rank, i, t.op); }, input.data());

  LibraryBlocks* const blocks = t.libraryMemory ? &library : nullptr;
  Guarded sendBuffer(std::max(in, out) * size, blocks), receiveBuffer(out * size, blocks);
  std::byte* send = sendBuffer.data();
  std::byte* receive = receiveBuffer.data();
  if (t.inPlace) {
    // One buffer for both; the smaller side lies where NCCL's in-place rule wants it.
    receive = send + contract.placeOfReceived() * size;
    send += contract.placeOfSent() * size;
  }
  std::copy(input.begin(), input.end(), send);

  taccRedOp_t op = static_cast<taccRedOp_t>(t.op);
  if (t.op == mulSum) {
    std::byte factor[8];
    encode(t.type, factor, factorOf(rank));
    expectSuccess(taccRedOpCreatePreMulSum(&op, factor, t.type, taccScalarHostImmediate, comm), comm);
  }
  expectSuccess(contract.call(send, receive, t.type, op, comm), comm);
  if (t.op == mulSum) expectSuccess(taccRedOpDestroy(op, comm), comm);

  EXPECT_TRUE(sendBuffer.intact() && receiveBuffer.intact()) << nameOfTrial(t, rank, ranks);
  if (contract.receives()) {
    const auto expected = expectedOutput(t, rank, ranks);
    const auto firstWrong = [&] {
      const auto wrong = std::mismatch(expected.begin(), expected.end(), receive).first - expected.begin();
      return static_cast<std::size_t>(wrong) / size;
    };
    EXPECT_TRUE(expected.empty() || std::memcmp(expected.data(), receive, expected.size()) == 0)
        << nameOfTrial(t, rank, ranks) << ": first wrong element " << firstWrong();
  }
  EXPECT_TRUE(t.inPlace || input.empty() || std::memcmp(input.data(), send, input.size()) == 0)
      << nameOfTrial(t, rank, ranks) << ": input changed";
}

}  // namespace

/// Those that numbers have; operations_test.cpp has the others.
std::vector<int> operationsOf(Collective collective) {
  if (!isReduction(collective)) return {taccSum};
  if (isPrefix(collective)) return {taccSum, taccProd, taccMax, taccMin, mulSum};
  return {taccSum, taccProd, taccMax, taccMin, taccAvg, mulSum};
}

std::vector<Trial> trialsOfTypes(int ranks, const std::vector<std::size_t>& counts) {
  std::vector<Trial> trials;
  for (int c = 0; c < collectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (int type = 0; type <= taccBfloat16; ++type)
      for (const int op : operationsOf(collective))
        for (const std::size_t count : counts)
          trials.push_back({collective, static_cast<taccDataType_t>(type), op, count, (type + op) % ranks,
                            (type + op) % 2 == 1, false});
  }
  return trials;
}

std::vector<Trial> trialsOfRoots(int ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<Trial> trials;
  for (int c = 0; c < collectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (int root = 0; root < (isRooted(collective) ? ranks : 1); ++root)
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, p - 1, p, p + 1, std::size_t{17}, std::size_t{1023}, std::size_t{20011}})
        for (const bool inPlace : {false, true})
          for (const bool library : {false, true})
            trials.push_back({collective, taccFloat32, taccSum, count, root, inPlace, library});
  }
  return trials;
}

std::vector<Trial> trialsOfElements(int ranks, std::size_t elements) {
  std::vector<Trial> trials;
  for (int c = 0; c < collectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    const Contract ofOne{collective, 0, ranks, 0, 1};
    const std::size_t count = elements / (ofOne.sent() * ofOne.received());
    for (const bool inPlace : {false, true})
      for (const bool library : {false, true})
        trials.push_back({collective, taccInt32, taccSum, count, ranks - 1, inPlace, library});
  }
  return trials;
}

void runAll(taccComm_t comm, int rank, int ranks, const std::vector<Trial>& trials, std::string_view algorithm) {
  LibraryBlocks library;
  for (const Trial& t : trials) {
    runTrial(t, comm, rank, ranks, library);
    if (!algorithm.empty() && t.count > 0) {
      EXPECT_EQ(std::string_view(taccCommLastAlgorithm(comm)), algorithm) << nameOf(t.collective) << " of " << t.count;
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace tacc::test
