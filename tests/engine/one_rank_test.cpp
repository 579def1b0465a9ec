// What one of 16,384 ranks needs to make its part of a plan, to lower it and to run it: little memory, whatever the
// plan, and time in proportion to its steps.
#include <gtest/gtest.h>
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <numeric>

#include "algorithms/registry.hpp"
#include "engine/net/network_program.hpp"
#include "engine/net/network_run.hpp"

namespace {
std::size_t liveBytes = 0, mostBytes = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  liveBytes += malloc_usable_size(memory);
  mostBytes = std::max(mostBytes, liveBytes);
  return memory;
}
// The library's calls the above; a sanitizer's would not, and give out memory of its own.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  liveBytes -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace tacc {
namespace {

struct Need {
  std::size_t bytes = 0;  // at the worst moment
  double milliseconds = 0;
};

/// Of this thread, so that others on the machine do not count.
double processorMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Need measure(const Algorithm& algorithm, const PlanRequest& request, int rank) {
  const std::size_t before = mostBytes = liveBytes;
  const double begin = processorMilliseconds();
  const NetworkProgram program = lowerForNetwork(makeLocalPlan(algorithm, request, rank), true);
  const double passed = processorMilliseconds() - begin;
  EXPECT_GT(program.steps.size(), 0U);
  return {mostBytes - before, passed};
}

std::vector<PlanRequest> requestsOf(const Algorithm& algorithm, int p) {
  std::vector<PlanRequest> layouts(1);
  if (algorithm.looksAtLayout) {
    for (const std::vector<int>& levels : {std::vector{8}, std::vector{8, 32}, std::vector{16, 16, 4}}) {
      layouts.emplace_back();
      if (p % 1024 == 0) {
        layouts.back().groups = equalGroups(p, levels);
        continue;
      }
      // Unequal ones: the last group of each level has what is left.
      int size = 1;
      for (const int level : levels) {
        size *= level;
        std::vector<int> sizes;
        for (int left = p; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, size));
        layouts.back().groups.push_back(sizes);
      }
    }
  }
  std::vector<PlanRequest> requests;
  for (PlanRequest& request : layouts) {
    for (int c = 0; c < collectiveCount; ++c) {
      request.collective = static_cast<Collective>(c);
      request.ranks = p;
      for (const int root : {0, p / 3}) {
        request.root = root;
        if ((root == 0 || isRooted(request.collective)) && algorithm.serves(request)) requests.push_back(request);
      }
    }
  }
  return requests;
}

class PlanOfOneRank : public testing::TestWithParam<const Algorithm*> {};

TEST_P(PlanOfOneRank, NeedsLittle) {
  for (const int p : {16384, 16000}) {
    for (const PlanRequest& request : requestsOf(*GetParam(), p)) {
      Need worst;
      for (const int rank : {0, 1, p / 3, p - 1}) {
        const Need need = measure(*GetParam(), request, rank);
        worst.bytes = std::max(worst.bytes, need.bytes);
        worst.milliseconds = std::max(worst.milliseconds, need.milliseconds);
      }
      std::printf("%s %s p=%d root=%d levels=%zu: %.2f MiB, %.1f ms\n", std::string(GetParam()->name).c_str(),
                  std::string(nameOf(request.collective)).c_str(), p, request.root, request.groups.size(),
                  static_cast<double>(worst.bytes) / 1048576, worst.milliseconds);
      EXPECT_LE(worst.bytes, 4U << 20) << GetParam()->name << " " << nameOf(request.collective) << " p=" << p;
    }
  }
}

/// The other ranks, as one of them sees them: what it sends is gone at once, and what it has posted comes one by one,
/// in that order.
class OthersInTurn final : public NetworkTransport {
 public:
  /// `first`: bytes of data that come with a header.
  OthersInTurn(CallHeader header, std::size_t first) : header_(header), first_(first) {}

  std::vector<std::byte> address() const override { return {}; }
  void setPeers(std::vector<std::vector<std::byte>>) override {}
  void send(int, std::uint32_t, const void*, std::size_t, NetworkRequest& request) override { request.done = true; }
  void receive(int, std::uint32_t, void* data, std::size_t capacity, NetworkRequest& request) override {
    request.done = false;
    request.bytes = capacity;
    if (capacity == sizeof header_ + inlineBytes) {
      std::memcpy(data, &header_, sizeof header_);
      request.bytes = sizeof header_ + first_;
    }
    posted_.push_back(&request);
  }
  bool progress() override {
    if (posted_.empty()) return false;
    posted_.front()->done = true;
    posted_.pop_front();
    return true;
  }
  int descriptor() const override { return -1; }
  bool arm() override { return true; }
  std::string describe() const override { return "others"; }

 private:
  CallHeader header_;
  std::size_t first_;
  std::deque<NetworkRequest*> posted_;
};

/// Processor time of one rank's part of an allreduce over a ring of `p`, a message at a time.
double millisecondsOfRing(int p) {
  constexpr std::size_t blockBytes = 64;
  PlanRequest request;
  request.collective = Collective::allReduce;
  request.ranks = p;
  const NetworkProgram program = lowerForNetwork(makeLocalPlan(*findAlgorithm("ring"), request, 0), true);
  constexpr std::uint64_t signature = 5;
  OthersInTurn others(CallHeader::of(signature, 1), blockBytes);
  NetworkPeers peers(others, p);
  NetworkRun run(peers);
  std::vector<float> data(static_cast<std::size_t>(p) * blockBytes / sizeof(float));
  auto* const bytes = reinterpret_cast<std::byte*>(data.data());
  const NetworkChunk whole{bytes, bytes, data.size()};
  std::vector<int> members(static_cast<std::size_t>(p));
  std::iota(members.begin(), members.end(), 0);
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    NetworkWork work;
    work.program = &program;
    work.members = members;
    work.chunks = {&whole, 1};
    work.elementBytes = sizeof(float);
    work.reduce = reduceKernel(taccFloat32, taccSum);
    work.signature = signature;
    work.call = 1;
    const double begin = processorMilliseconds();
    run.start(work, 1);
    for (run.advance(); !run.isFinished(); run.advance())
      if (!others.progress()) ADD_FAILURE() << "it waits for nothing";
    best = std::min(best, processorMilliseconds() - begin);
  }
  return best;
}

TEST(OneRankOfMany, RunsInTimeInProportionToItsSteps) {
  const double few = millisecondsOfRing(2048), many = millisecondsOfRing(16384);
  std::printf("ring of 2048: %.2f ms, of 16384: %.2f ms\n", few, many);
  // Looking through all messages at each would be 64 times.
  EXPECT_LT(many, 24 * few);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, PlanOfOneRank, testing::ValuesIn([] {
                           std::vector<const Algorithm*> all;
                           for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
                           return all;
                         }()),
                         [](const auto& suite) { return std::string(suite.param->name); });

}  // namespace
}  // namespace tacc
