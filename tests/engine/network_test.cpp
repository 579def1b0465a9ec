// Every algorithm through the network engine: all ranks in one thread, messages delivered in random order, real data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/registry.hpp"
#include "engine/net/network_run.hpp"
#include "engine/partition.hpp"
#include "engine/signature.hpp"
#include "fake_network.hpp"
#include "hosts_in_one_thread.hpp"
#include "support/collective_contract.hpp"

namespace tacc::test {
namespace {

struct Case {
  const Algorithm* algorithm;
  PlanRequest request;
  std::size_t count;
  bool inPlace;
  std::size_t chunks;
  std::size_t window;
  unsigned seed;
};

std::string describe(const Case& c) {
  return std::string(c.algorithm->name) + " " + std::string(nameOf(c.request.collective)) + " p " +
         std::to_string(c.request.ranks) + " root " + std::to_string(c.request.root) + " count " +
         std::to_string(c.count) + (c.inPlace ? " in place" : "") + " chunks " + std::to_string(c.chunks) + " window " +
         std::to_string(c.window) + " seed " + std::to_string(c.seed);
}

int valueOf(int rank, std::size_t i) { return static_cast<int>((static_cast<std::size_t>(rank) * 31 + i * 7) % 1009); }

Contract contractOf(const Case& c, int rank) {
  return {c.request.collective, rank, c.request.ranks, c.request.root, c.count};
}

int expectedAt(const Case& c, int rank, std::size_t i) {
  const Origin from = contractOf(c, rank).origin(i);
  int total = 0;
  for (int other = from.first; other < from.behind; ++other) total += valueOf(other, from.index);
  return total;
}

/// One rank's buffers; in place they share memory as the collectives define it.
struct Buffers {
  std::vector<int> memory, other;
  int* input = nullptr;
  int* output = nullptr;

  Buffers(const Case& c, int rank) {
    const Contract contract = contractOf(c, rank);
    const std::size_t in = contract.sent(), out = contract.received();
    memory.assign(std::max(in, out) + 1, -1);
    other.assign(out + 1, -1);
    input = memory.data() + (c.inPlace ? contract.placeOfSent() : 0);
    output = c.inPlace ? memory.data() + contract.placeOfReceived() : other.data();
    for (std::size_t i = 0; i < in; ++i) input[i] = valueOf(rank, i);
  }
};

std::vector<NetworkChunk> cutChunks(const Case& c, const Buffers& buffers) {
  std::vector<NetworkChunk> chunks;
  for (std::size_t k = 0; k < c.chunks; ++k) {
    const std::size_t each =
        roundUp((c.count + c.chunks - 1) / c.chunks, 16 * static_cast<std::size_t>(c.request.ranks));
    const std::size_t begin = std::min(c.count, k * each), end = std::min(c.count, begin + each);
    if (end == begin && k > 0) break;
    chunks.push_back({reinterpret_cast<const std::byte*>(buffers.input + begin),
                      reinterpret_cast<std::byte*>(buffers.output + begin), end - begin});
  }
  return chunks;
}

int copied = 0;  // calls of ranks whose blocks were copied into another order

void runCase(const Case& c, const Plan& plan) {
  const int p = c.request.ranks;
  FakeNetwork network(p, c.seed);
  std::mt19937 random(c.seed + 1);
  std::vector<Buffers> buffers;
  std::vector<NetworkProgram> programs;
  std::vector<std::unique_ptr<NetworkPeers>> peers;
  std::vector<std::unique_ptr<NetworkRun>> runs;
  // Half of the time the plan's rank r is another rank of the communicator, whose order the buffers have.
  std::vector<int> members(static_cast<std::size_t>(p));
  std::iota(members.begin(), members.end(), 0);
  const bool isDealt = c.seed % 2 == 1 && !isPrefix(c.request.collective);
  if (isDealt) std::ranges::shuffle(members, random);
  const auto actual = [&](int r) { return members[static_cast<std::size_t>(r)]; };
  // A third of the time some of them share hosts, in any order, and the rest of the edges are messages.
  std::vector<int> hostOf(static_cast<std::size_t>(p));
  for (int& host : hostOf) host = static_cast<int>(random() % (1 + c.seed % static_cast<unsigned>(p)));
  std::optional<HostsInOneThread> inside;
  if (c.seed % 3 == 0) inside.emplace(network, hostOf, c.seed % 2 == 0);
  const auto endOf = [&](int rank) -> NetworkTransport& { return inside ? inside->end(rank) : network.end(rank); };
  Case asked = c;
  asked.request.root = actual(c.request.root);
  for (int r = 0; r < p; ++r) {
    buffers.emplace_back(asked, actual(r));
    programs.push_back(lowerForNetwork(localPlanOf(plan, r), c.inPlace));
    peers.push_back(std::make_unique<NetworkPeers>(endOf(actual(r)), p));
    runs.push_back(std::make_unique<NetworkRun>(*peers.back()));
  }
  std::vector<std::vector<NetworkChunk>> chunks(runs.size());
  // The same call twice: numbers and bounce buffers go on.
  for (std::uint32_t call = 1; call <= 2; ++call) {
    for (int r = 0; r < p; ++r) {
      const auto index = static_cast<std::size_t>(r);
      buffers[index] = Buffers(asked, actual(r));
      NetworkWork work;
      work.program = &programs[index];
      work.members = members;
      chunks[index] = cutChunks(c, buffers[index]);
      work.chunks = chunks[index];
      work.blockBytes = c.count * sizeof(int);
      work.elementBytes = sizeof(int);
      if (partitionOf(c.request.collective) == Partition::stack && c.seed % 2 == 1) work.places = members;
      const Contract contract = contractOf(c, r);
      work.inputHasPlaces = contract.sendsAll() && p > 1;
      work.outputHasPlaces = contract.receivesAll() && p > 1;
      work.copiesBlocks = !work.places.empty() && work.inputHasPlaces != work.outputHasPlaces &&
                          work.chunks.size() == 1 && !c.inPlace && !isRooted(c.request.collective) &&
                          c.seed / 4 % 2 == 0;
      copied += work.copiesBlocks ? 1 : 0;
      work.reduce = reduceKernel(taccInt32, taccSum);
      work.signature = makeSignature(c.request.collective, taccInt32, taccSum, c.request.root, c.count);
      work.call = call;
      work.window = c.window;
      runs[index]->start(work, static_cast<std::size_t>(-1));
    }
    int idle = 0;
    while (!std::ranges::all_of(runs, [](const auto& run) { return run->isFinished(); })) {
      const std::size_t turn = random() % runs.size();
      NetworkRun& run = *runs[turn];
      bool moved = run.advance();
      if (inside && random() % 2 == 0) moved = endOf(members[turn]).progress() || moved;
      if (const int sender = run.nextSender(); sender >= 0) {
        const std::vector<int> awaited = run.awaited();
        EXPECT_NE(std::ranges::find(awaited, sender), awaited.end()) << "nothing is due from rank " << sender;
      }
      const bool delivered = random() % 2 == 0 && network.step();
      idle = moved || delivered ? 0 : idle + 1;
      ASSERT_LT(idle, 10000) << "stuck: " << describe(c);
    }
    while (network.step()) {
    }
    for (int r = 0; r < p; ++r) EXPECT_TRUE(endOf(r).drain()) << "what rank " << r << " owes others: " << describe(c);
    ASSERT_TRUE(network.isEmpty()) << "messages that nobody received: " << describe(c);
    for (int r = 0; r < p; ++r) {
      const Contract contract = contractOf(asked, actual(r));
      for (std::size_t i = 0; contract.receives() && i < contract.received(); ++i)
        ASSERT_EQ(buffers[static_cast<std::size_t>(r)].output[i], expectedAt(asked, actual(r), i))
            << describe(c) << " rank " << r << " element " << i << " call " << call;
    }
  }
}

/// Groups of three ranks and of what is left, and the last ones of these together.
std::vector<std::vector<int>> unequalGroups(int p) {
  std::vector<int> sizes;
  for (int left = p; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, 3));
  if (sizes.size() < 3) return {sizes};
  return {sizes, {sizes[0], p - sizes[0]}};
}

class Network : public testing::TestWithParam<int> {};

TEST_P(Network, everyAlgorithmWithMessagesInAnyOrder) {
  const int p = GetParam();
  const bool quick = std::getenv("TACC_TEST_QUICK") != nullptr;
  unsigned seed = static_cast<unsigned>(p) * 1000;
  copied = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (int kind = 0; kind < collectiveCount; ++kind) {
      const auto collective = static_cast<Collective>(kind);
      const std::vector<int> roots = !isRooted(collective) ? std::vector{0}
                                     : quick               ? std::vector{p / 2}
                                                           : std::vector{0, p / 2, p - 1};
      for (const int root : roots) {
        PlanRequest request{collective, p, root};
        if (algorithm.looksAtLayout) request.groups = unequalGroups(p);
        if (!algorithm.serves(request)) continue;
        const Plan plan = makePlan(algorithm, request);
        // The longest: of every message more than goes with a header, chunks of many pieces; of a stack in every block.
        const std::size_t longest = partitionOf(collective) == Partition::stack ? 6007 : 40001;
        for (const std::size_t count : {std::size_t{1}, static_cast<std::size_t>(p) + 1, std::size_t{777}, longest})
          for (const bool inPlace : {false, true})
            for (const std::size_t chunks : {std::size_t{1}, std::size_t{5}}) {
              ++seed;
              if ((quick || p > 7) && seed % 3 != 0) continue;  // a sample: many ranks take long
              runCase({&algorithm, request, count, inPlace, chunks, 1 + seed % 4, seed}, plan);
            }
      }
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(copied, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Network, testing::Values(2, 3, 4, 5, 7, 8, 13, 16),
                         [](const auto& suite) { return std::to_string(suite.param); });

TEST(NetworkCalls, thatDifferAreFoundByTheFirstMessage) {
  for (const std::size_t count : {std::size_t{4}, std::size_t{100000}}) {
    FakeNetwork network(2, 1);
    const PlanRequest request{Collective::allReduce, 2, 0};
    const Plan plan = makePlan(*findAlgorithm("ring"), request);
    const std::vector<int> members{0, 1};
    std::vector<std::vector<int>> memory(2, std::vector<int>(count));
    std::vector<NetworkChunk> chunks(2);
    std::vector<NetworkProgram> programs;
    std::vector<std::unique_ptr<NetworkPeers>> peers;
    std::vector<std::unique_ptr<NetworkRun>> runs;
    for (int r = 0; r < 2; ++r) programs.push_back(lowerForNetwork(localPlanOf(plan, r), true));
    for (int r = 0; r < 2; ++r) {
      auto* data = reinterpret_cast<std::byte*>(memory[static_cast<std::size_t>(r)].data());
      peers.push_back(std::make_unique<NetworkPeers>(network.end(r), 2));
      runs.push_back(std::make_unique<NetworkRun>(*peers.back()));
      NetworkWork work;
      work.program = &programs[static_cast<std::size_t>(r)];
      work.members = members;
      chunks[static_cast<std::size_t>(r)] = {data, data, count};
      work.chunks = {&chunks[static_cast<std::size_t>(r)], 1};
      work.elementBytes = sizeof(int);
      work.reduce = reduceKernel(taccInt32, taccSum);
      work.signature = makeSignature(Collective::allReduce, r == 0 ? taccInt32 : taccFloat32, taccSum, 0, count);
      work.call = 7;
      runs.back()->start(work, 1);
    }
    std::string message;
    try {
      for (int i = 0; i < 1000; ++i) {
        runs[0]->advance();
        network.step();
        runs[1]->advance();
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccInvalidUsage);
      message = error.what();
    }
    EXPECT_NE(message.find("int32"), std::string::npos) << message;
    EXPECT_NE(message.find("float"), std::string::npos) << message;
    EXPECT_NE(message.find("call 7"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tacc::test
