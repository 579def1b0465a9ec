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

namespace tacc::test {

std::size_t blocksIn(Collective c, int ranks) {
  return c == Collective::reduceScatter || c == Collective::allToAll || c == Collective::scatter
             ? static_cast<std::size_t>(ranks)
             : 1;
}
std::size_t blocksOut(Collective c, int ranks) {
  return c == Collective::allGather || c == Collective::allToAll || c == Collective::gather
             ? static_cast<std::size_t>(ranks)
             : 1;
}

namespace {

/// So many elements, and inputOf begins anew: to compute each would take longer than all that is under test.
constexpr std::size_t inputPeriod = 55;

double inputOf(int rank, std::size_t i, int op) {
  const auto mixed = static_cast<int>((static_cast<std::size_t>(rank) * 7 + i * 3 + i / 11) % 5);
  return op == taccProd ? 1 + mixed % 2 : 1 + mixed;
}
double factorOf(int rank) { return rank % 3 + 1; }

double reduceAt(int ranks, std::size_t i, int op) {
  double result = op == mulSum ? inputOf(0, i, op) * factorOf(0) : inputOf(0, i, op);
  for (int r = 1; r < ranks; ++r) {
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
  return op == taccAvg ? result / ranks : result;
}

std::string nameOfTrial(const Trial& t, int rank, int ranks) {
  return std::string(nameOf(t.collective)) + " " + std::string(nameOf(t.type)) + " op " + std::to_string(t.op) +
         " count " + std::to_string(t.count) + " root " + std::to_string(t.root) + (t.inPlace ? " in place" : "") +
         " rank " + std::to_string(rank) + " of " + std::to_string(ranks);
}

/// Element `i` of block `block` of rank `rank`'s output. Only an output with a block of every rank has more than one.
double expectedAt(const Trial& t, int rank, int ranks, int block, std::size_t i) {
  const std::size_t mine = static_cast<std::size_t>(rank) * t.count + i;
  switch (t.collective) {
    case Collective::allReduce:
    case Collective::reduce:
      return reduceAt(ranks, i, t.op);
    case Collective::scan:
      return reduceAt(rank + 1, i, t.op);
    case Collective::exscan:
      return reduceAt(rank, i, t.op);
    case Collective::reduceScatter:
      return reduceAt(ranks, mine, t.op);
    case Collective::broadcast:
      return inputOf(t.root, i, t.op);
    case Collective::scatter:
      return inputOf(t.root, mine, t.op);
    case Collective::allToAll:
      return inputOf(block, mine, t.op);
    case Collective::allGather:
    case Collective::gather:
      return inputOf(block, i, t.op);
    case Collective::barrier:
      break;
  }
  return 0;
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
  const std::size_t blocks = blocksOut(t.collective, ranks), blockBytes = t.count * sizeOf(t.type);
  std::vector<std::byte> output(blocks * blockBytes);
  for (std::size_t block = 0; block < blocks; ++block)
    encodeRepeating(
        t.type, t.count, [&](std::size_t i) { return expectedAt(t, rank, ranks, static_cast<int>(block), i); },
        output.data() + block * blockBytes);
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

taccResult_t callCollective(const Trial& t, const void* send, void* receive, taccRedOp_t op, taccComm_t comm) {
  switch (t.collective) {
    case Collective::allReduce:
      return taccAllReduce(send, receive, t.count, t.type, op, comm, nullptr);
    case Collective::broadcast:
      return taccBroadcast(send, receive, t.count, t.type, t.root, comm, nullptr);
    case Collective::reduce:
      return taccReduce(send, receive, t.count, t.type, op, t.root, comm, nullptr);
    case Collective::allGather:
      return taccAllGather(send, receive, t.count, t.type, comm, nullptr);
    case Collective::reduceScatter:
      return taccReduceScatter(send, receive, t.count, t.type, op, comm, nullptr);
    case Collective::allToAll:
      return taccAllToAll(send, receive, t.count, t.type, comm, nullptr);
    case Collective::gather:
      return taccGather(send, receive, t.count, t.type, t.root, comm, nullptr);
    case Collective::scatter:
      return taccScatter(send, receive, t.count, t.type, t.root, comm, nullptr);
    case Collective::scan:
      return taccScan(send, receive, t.count, t.type, op, comm, nullptr);
    case Collective::exscan:
      return taccExscan(send, receive, t.count, t.type, op, comm, nullptr);
    case Collective::barrier:
      return taccBarrier(comm, nullptr);
  }
  return taccInternalError;
}

void runTrial(const Trial& t, taccComm_t comm, int rank, int ranks, LibraryBlocks& library) {
  const std::size_t size = sizeOf(t.type);
  const std::size_t in = blocksIn(t.collective, ranks) * t.count, out = blocksOut(t.collective, ranks) * t.count;
  const bool isRoot = rank == t.root;
  const bool receives = t.collective == Collective::exscan
                            ? rank > 0
                            : isRoot || !(t.collective == Collective::reduce || t.collective == Collective::gather);
  const auto me = static_cast<std::size_t>(rank);

  std::vector<std::byte> input(in * size);
  encodeRepeating(
      t.type, in, [&](std::size_t i) { return inputOf(rank, i, t.op); }, input.data());

  LibraryBlocks* const blocks = t.libraryMemory ? &library : nullptr;
  Guarded sendBuffer(std::max(in, out) * size, blocks), receiveBuffer(out * size, blocks);
  std::byte* send = sendBuffer.data();
  std::byte* receive = receiveBuffer.data();
  if (t.inPlace) {
    // One buffer for both; the smaller side lies where NCCL's in-place rule wants it.
    receive = send;
    if (t.collective == Collective::allGather || (t.collective == Collective::gather && isRoot))
      send = receive + me * t.count * size;
    if (t.collective == Collective::reduceScatter || (t.collective == Collective::scatter && isRoot))
      receive = send + me * t.count * size;
  }
  std::copy(input.begin(), input.end(), send);

  taccRedOp_t op = static_cast<taccRedOp_t>(t.op);
  if (t.op == mulSum) {
    std::byte factor[8];
    encode(t.type, factor, factorOf(rank));
    expectSuccess(taccRedOpCreatePreMulSum(&op, factor, t.type, taccScalarHostImmediate, comm), comm);
  }
  expectSuccess(callCollective(t, send, receive, op, comm), comm);
  if (t.op == mulSum) expectSuccess(taccRedOpDestroy(op, comm), comm);

  EXPECT_TRUE(sendBuffer.intact() && receiveBuffer.intact()) << nameOfTrial(t, rank, ranks);
  if (receives) {
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
    const std::size_t count = elements / (blocksIn(collective, ranks) * blocksOut(collective, ranks));
    for (const bool inPlace : {false, true})
      for (const bool library : {false, true})
        trials.push_back({collective, taccInt32, taccSum, count, ranks - 1, inPlace, library});
  }
  return trials;
}

void runAll(taccComm_t comm, int rank, int ranks, const std::vector<Trial>& trials) {
  LibraryBlocks library;
  for (const Trial& t : trials) {
    runTrial(t, comm, rank, ranks, library);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace tacc::test
