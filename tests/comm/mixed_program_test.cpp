// Correct programs of a kind of their own: a communicator and several parts of it, a few streams, groups that span
// communicators, messages among them, calls with counts, calls that were made before among others, and parts that are
// made while calls of others are on their way. All ranks make the calls in one order; each chooses by itself to which
// of its streams it gives a call, a send or a receive.
//
//   TACC_TEST_PROGRAMS=1000   so many programs of each kind instead of 8
//   TACC_TEST_SEED=1          the seed of the first one instead of 0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <list>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rank_harness.hpp"
#include "support/settings.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

constexpr int streams = 3, mostParts = 4;
constexpr int kinds = 15, firstUnequal = 10;
constexpr std::size_t mostKept = 4;  // shapes that are used again
constexpr double patience = 60;      // seconds that a call may wait: a hang, and not a loaded machine

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }
  bool oneIn(int times) { return below(times) == 0; }
  /// Elements: mostly few.
  int count() {
    const int kind = below(16);
    return below(kind < 6 ? 3 : kind < 10 ? 20 : kind < 13 ? 600 : kind < 15 ? 5000 : 60'000);
  }

 private:
  std::mt19937_64 random_;
};

/// A communicator as one rank sees it: which ranks of the whole are in it, in its order.
struct Part {
  taccComm_t comm = nullptr;
  std::vector<int> members;
  int self = 0;

  int size() const { return static_cast<int>(members.size()); }
};

/// What all ranks draw alike for a call.
struct Shape {
  int kind, count, rootDraw, shift;

  /// Elements that place `from` gives place `to`, of a call with counts; where one block goes to all, or all give
  /// blocks of one length, the other place has no say.
  std::size_t lengthOf(int from, int to) const {
    const int giver = kind == 11 || kind == 13 ? 0 : from, taker = kind == 10 || kind == 12 ? 0 : to;
    return static_cast<std::size_t>(count * ((giver * 7 + taker * 3 + shift) % 4) / 2);
  }
};

/// A call that is on its way, and what it is to bring.
struct Pending {
  std::vector<std::int32_t> sent, received, expected;
  std::string what;
};

class Program {
 public:
  Program(std::uint64_t seed, taccComm_t comm, int rank, int ranks)
      : common_(seed), own_(seed * 31 + static_cast<std::uint64_t>(rank) + 7), seed_(seed), rank_(rank) {
    Part& whole = parts_.emplace_back();
    whole.comm = comm;
    for (int r = 0; r < ranks; ++r) whole.members.push_back(r);
    whole.self = rank;
    for (taccStream_t& stream : streams_) check(taccStreamCreate(&stream), "a stream");
  }

  void run() {
    const int steps = 30 + common_.below(60);
    for (step_ = 0; step_ < steps && !testing::Test::HasFailure(); ++step_) {
      const int kind = common_.below(24);
      if (kind == 0)
        split();
      else if (kind == 1 && parts_.size() > 1)
        drop();
      else if (kind == 2)
        settle();
      else if (kind < 8)
        group();
      else
        call(common_.below(static_cast<int>(parts_.size())), false);
    }
    settle();
    while (parts_.size() > 1) drop();
    for (taccStream_t stream : streams_) check(taccStreamDestroy(stream), "the end of a stream");
  }

 private:
  void check(taccResult_t result, const std::string& what) {
    EXPECT_EQ(result, taccSuccess) << where(what) << ": " << taccGetLastError(nullptr);
  }
  std::string where(const std::string& what) const {
    return fmt::format("program {}, step {}, rank {}, {}", seed_, step_, rank_, what);
  }

  /// What rank `from` of the whole gives to call `number`: small, so that sums are exact.
  static std::int32_t value(std::uint64_t number, int from, int element) {
    return static_cast<std::int32_t>(
        (number * 37 + static_cast<std::uint64_t>(from) * 101 + static_cast<std::uint64_t>(element) * 13) % 1009);
  }

  taccStream_t chooseStream() {
    const int chosen = own_.below(streams + 1);
    return chosen == streams ? nullptr : streams_[static_cast<std::size_t>(chosen)];
  }

  /// Waits for all streams, and looks at all results.
  void settle() {
    for (taccStream_t stream : streams_) check(taccStreamSynchronize(stream), "waiting for a stream");
    for (const Pending& one : pending_) EXPECT_EQ(one.received, one.expected) << one.what;
    pending_.clear();
  }

  /// A part of any of the communicators. Which ranks, and in which order, is drawn alike by all.
  void split() {
    if (parts_.size() > mostParts) return;
    const std::size_t index = static_cast<std::size_t>(common_.below(static_cast<int>(parts_.size())));
    const Part& from = parts_[index];
    const int way = common_.below(4);
    const auto colorOf = [&](int place, int size) {
      return way == 0 ? place % 2 : way == 1 ? place * 2 / size : way == 2 ? 0 : place;
    };
    const bool isReversed = common_.oneIn(2);
    Part made;
    if (from.comm == nullptr) return parts_.push_back(made);
    const int color = colorOf(from.self, from.size());
    for (int i = 0; i < from.size(); ++i) {
      const int place = isReversed ? from.size() - 1 - i : i;
      if (colorOf(place, from.size()) != color) continue;
      if (place == from.self) made.self = made.size();
      made.members.push_back(from.members[static_cast<std::size_t>(place)]);
    }
    check(taccCommSplit(from.comm, color, isReversed ? -from.self : from.self, &made.comm, nullptr), "a split");
    parts_.push_back(std::move(made));
  }

  /// The last communicator that was made. Its calls must have ended.
  void drop() {
    settle();
    check(taccCommDestroy(parts_.back().comm), "the end of a part");
    parts_.pop_back();
  }

  void group() {
    const int calls = 1 + common_.below(6);
    check(taccGroupStart(), "the begin of a group");
    for (int i = 0; i < calls; ++i) call(common_.below(static_cast<int>(parts_.size())), true);
    check(taccGroupEnd(), "the end of a group");
  }

  /// One that was used before, now and then: what repeated calls keep meets that of others.
  Shape drawShape() {
    if (!past_.empty() && common_.oneIn(3))
      return past_[static_cast<std::size_t>(common_.below(static_cast<int>(past_.size())))];
    const int kind = common_.below(kinds), count = common_.count(), rootDraw = common_.below(1 << 20);
    past_.push_back({kind, count, rootDraw, common_.below(1 << 20)});
    if (past_.size() > mostKept) past_.pop_front();
    return past_.back();
  }

  void call(int which, bool isGrouped) {
    const Part& part = parts_[static_cast<std::size_t>(which)];
    const Shape shape = drawShape();
    const auto [kind, count, rootDraw, shift] = shape;
    ++number_;
    // Parts beside each other have the same number here, and other ranks.
    if (part.comm == nullptr) return;
    const int size = part.size(), root = rootDraw % size;
    Pending& one = pending_.emplace_back();
    one.what = where(fmt::format("part {} of {}, kind {}, {} elements, root {}{}", which, size, kind, count, root,
                                 isGrouped ? ", in a group" : ""));
    if (kind >= firstUnequal) return unequal(part, one, shape, root);
    const std::uint64_t number = number_;
    const auto memberAt = [&](int place) { return part.members[static_cast<std::size_t>(place)]; };
    const auto fill = [&](std::vector<std::int32_t>& to, int elements, const auto& valueAt) {
      to.resize(static_cast<std::size_t>(elements));
      for (int i = 0; i < elements; ++i) to[static_cast<std::size_t>(i)] = valueAt(i);
    };
    const auto sumAt = [&](int i) {
      std::int32_t sum = 0;
      for (const int member : part.members) sum += value(number, member, i);
      return sum;
    };
    const bool sendsAll = kind == 4 || kind == 5 || kind == 7, receivesAll = kind == 3 || kind == 5 || kind == 6;
    const bool receives = part.self == root || (kind != 2 && kind != 6);
    fill(one.sent, sendsAll ? count * size : count, [&](int i) { return value(number, rank_, i); });
    one.received.assign(static_cast<std::size_t>(receivesAll ? count * size : count), -1);
    one.expected = one.received;
    if (kind == 8) return barrier(part, one);
    if (kind == 9) return exchange(part, one, count, size > 1 ? 1 + shift % (size - 1) : 0, number, isGrouped);
    if (receives)
      fill(one.expected, receivesAll ? count * size : count, [&](int i) {
        switch (kind) {
          case 0:
          case 2:
            return sumAt(i);
          case 1:
            return value(number, memberAt(root), i);
          case 4:
            return sumAt(part.self * count + i);
          case 5:
            return value(number, memberAt(i / count), part.self * count + i % count);
          case 7:
            return value(number, memberAt(root), part.self * count + i);
          default:
            return value(number, memberAt(i / count), i % count);
        }
      });
    check(enter(kind, one, static_cast<std::size_t>(count), root, part.comm, chooseStream()), one.what);
  }

  static taccResult_t enter(int kind, Pending& one, std::size_t count, int root, taccComm_t comm, taccStream_t stream) {
    void* const in = one.sent.data();
    void* const out = one.received.data();
    switch (kind) {
      case 0:
        return taccAllReduce(in, out, count, taccInt32, taccSum, comm, stream);
      case 1:
        return taccBroadcast(in, out, count, taccInt32, root, comm, stream);
      case 2:
        return taccReduce(in, out, count, taccInt32, taccSum, root, comm, stream);
      case 3:
        return taccAllGather(in, out, count, taccInt32, comm, stream);
      case 4:
        return taccReduceScatter(in, out, count, taccInt32, taccSum, comm, stream);
      case 5:
        return taccAllToAll(in, out, count, taccInt32, comm, stream);
      case 6:
        return taccGather(in, out, count, taccInt32, root, comm, stream);
      default:
        return taccScatter(in, out, count, taccInt32, root, comm, stream);
    }
  }

  /// Blocks one behind the other, of lengths that differ.
  void unequal(const Part& part, Pending& one, const Shape& shape, int root) {
    const int kind = shape.kind, self = part.self, size = part.size();
    const bool isRoot = self == root, sendsAll = kind == 11 || kind == 13 || kind == 14;
    const bool sends = kind != 13 || isRoot;
    std::vector<std::size_t> given, taken;
    for (int other = 0; other < size; ++other) {
      given.push_back(shape.lengthOf(self, other));
      taken.push_back(shape.lengthOf(other, self));
    }
    const auto total = [](const std::vector<std::size_t>& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    };
    one.sent.resize(!sends ? 0 : sendsAll ? total(given) : given[0]);
    for (std::size_t i = 0; i < one.sent.size(); ++i) one.sent[i] = value(number_, rank_, static_cast<int>(i));
    const auto valueAt = [&](int from, std::size_t i) {
      for (int other = 0; sendsAll && other < self; ++other) i += shape.lengthOf(from, other);
      return value(number_, part.members[static_cast<std::size_t>(from)], static_cast<int>(i));
    };
    if (kind == 11 || kind == 13) {
      for (std::size_t i = 0; i < taken[0]; ++i) {
        std::int32_t sum = 0;
        for (int from = 0; kind == 11 && from < size; ++from) sum += valueAt(from, i);
        one.expected.push_back(kind == 11 ? sum : valueAt(root, i));
      }
    } else if (kind != 12 || isRoot) {
      for (int from = 0; from < size; ++from)
        for (std::size_t i = 0; i < taken[static_cast<std::size_t>(from)]; ++i)
          one.expected.push_back(valueAt(from, i));
    }
    one.received.assign(one.expected.size(), -1);
    check(enterUnequal(kind, one, given, taken, root, part.comm, chooseStream()), one.what);
  }

  static taccResult_t enterUnequal(int kind, Pending& one, const std::vector<std::size_t>& given,
                                   const std::vector<std::size_t>& taken, int root, taccComm_t comm,
                                   taccStream_t stream) {
    void* const in = one.sent.data();
    void* const out = one.received.data();
    switch (kind) {
      case 10:
        return taccAllGatherV(in, out, taken.data(), nullptr, taccInt32, comm, stream);
      case 11:
        return taccReduceScatterV(in, out, given.data(), nullptr, taccInt32, taccSum, comm, stream);
      case 12:
        return taccGatherV(in, one.sent.size(), out, taken.data(), nullptr, taccInt32, root, comm, stream);
      case 13:
        return taccScatterV(in, given.data(), nullptr, out, one.received.size(), taccInt32, root, comm, stream);
      default:
        return taccAllToAllV(in, given.data(), nullptr, out, taken.data(), nullptr, taccInt32, comm, stream);
    }
  }

  void barrier(const Part& part, Pending& one) { check(taccBarrier(part.comm, chooseStream()), one.what); }

  /// Everybody sends to whom is `shift` further in the part.
  void exchange(const Part& part, Pending& one, int count, int shift, std::uint64_t number, bool isGrouped) {
    const int size = part.size();
    if (shift == 0) return;
    const int to = (part.self + shift) % size, from = (part.self + size - shift) % size;
    for (int i = 0; i < count; ++i)
      one.expected[static_cast<std::size_t>(i)] = value(number, part.members[static_cast<std::size_t>(from)], i);
    const auto elements = static_cast<std::size_t>(count);
    taccStream_t const stream = chooseStream(), other = chooseStream();
    if (!isGrouped) check(taccGroupStart(), "the begin of an exchange");
    if (own_.oneIn(2)) {
      check(taccSend(one.sent.data(), elements, taccInt32, to, part.comm, stream), one.what);
      check(taccRecv(one.received.data(), elements, taccInt32, from, part.comm, other), one.what);
    } else {
      check(taccRecv(one.received.data(), elements, taccInt32, from, part.comm, stream), one.what);
      check(taccSend(one.sent.data(), elements, taccInt32, to, part.comm, other), one.what);
    }
    if (!isGrouped) check(taccGroupEnd(), "the end of an exchange");
  }

  Draw common_, own_;
  std::uint64_t seed_, number_ = 0;
  int rank_, step_ = 0;
  std::vector<Part> parts_;
  std::array<taccStream_t, streams> streams_{};
  std::list<Pending> pending_;
  std::deque<Shape> past_;
};

taccConfig_t patient() {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.operationTimeout = patience;
  return config;
}

void runPrograms(taccComm_t comm, int rank, int ranks, std::uint64_t more = 0) {
  const auto first = numberFrom<std::uint64_t>("TACC_TEST_SEED", 0) + more;
  const auto programs = numberFrom<std::uint64_t>("TACC_TEST_PROGRAMS", isQuick() ? 2 : 8);
  for (std::uint64_t seed = first; seed < first + programs && !testing::Test::HasFailure(); ++seed)
    Program(seed, comm, rank, ranks).run();
}

class Mixed : public testing::TestWithParam<int> {};

TEST_P(Mixed, isRightAmongProcesses) {
  runRanks(
      RankKind::processes, GetParam(), [](taccComm_t comm, int rank) { runPrograms(comm, rank, GetParam()); },
      patient());
}
TEST_P(Mixed, isRightAmongThreads) {
  runRanks(
      RankKind::threads, GetParam(), [](taccComm_t comm, int rank) { runPrograms(comm, rank, GetParam()); }, patient());
}
/// Each thread of a process runs programs of its own on a communicator of its own.
TEST_P(Mixed, isRightInSeveralThreadsAtOnce) {
  runRanks(
      RankKind::processes, GetParam(),
      [](taccComm_t comm, int rank) {
        std::array<taccComm_t, 3> comms{};
        for (taccComm_t& one : comms) expectSuccess(taccCommSplit(comm, 0, rank, &one, nullptr), comm);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < comms.size(); ++i)
          threads.emplace_back([&, i] { runPrograms(comms[i], rank, GetParam(), 1000 * (1 + i)); });
        for (std::thread& thread : threads) thread.join();
        for (taccComm_t one : comms) expectSuccess(taccCommDestroy(one), one);
      },
      patient());
}
INSTANTIATE_TEST_SUITE_P(Ranks, Mixed, testing::Range(2, 5), testing::PrintToStringParamName());

TEST(MixedOnHosts, isRight) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  const VirtualCluster cluster(1, 2);
  runOnHosts(
      cluster, {1, 2, 1, 2}, [](taccComm_t comm, int rank) { runPrograms(comm, rank, 4); }, patient());
}

}  // namespace
}  // namespace tacc::test
