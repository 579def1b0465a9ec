// Workers on several virtual hosts: their numbers travel, and a host that is cut off costs the others nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "center_team.hpp"
#include "easgd/center.hpp"
#include "easgd/center_memory.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc {
namespace {

using test::exchange;
using test::failureOf;
using test::Keeper;
using test::patience;
using test::Signal;
using test::startWorker;
using test::VirtualCluster;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t count = 2 * CenterMemory::shardElements + 3;

class CenterCluster : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_F(CenterCluster, WorkersOfAllHostsMoveOneCenter) {
  const VirtualCluster cluster(1, 3);
  const Keeper keeper(count, {.timeout = patience}, [&] { cluster.enter(1); });
  constexpr int times = 30;
  std::vector<test::ChildProcess> workers;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::vector<int> hosts{1, 1, 2, 3, 3};
  for (std::size_t w = 0; w < hosts.size(); ++w)
    workers.push_back(startWorker([&, w] {
      cluster.enter(hosts[w]);
      const auto own = connectCenter(keeper.id(), count, {.timeout = patience});
      EXPECT_EQ(own->isRemote(), hosts[w] != 1);
      std::vector<float> weights(count, static_cast<float>(1 << w));
      for (int i = 0; i < times; ++i) exchange(*own, weights, 1.0f);
      double sum = 0;
      for (const float weight : weights) sum += weight;
      return ::write(ends[1], &sum, sizeof sum) == sizeof sum;
    }));
  for (test::ChildProcess& worker : workers) EXPECT_EQ(worker.wait(), 0);
  double sum = 0;
  for (std::size_t w = 0; w < hosts.size(); ++w) {
    double one = 0;
    ASSERT_EQ(::read(ends[0], &one, sizeof one), static_cast<ssize_t>(sizeof one));
    sum += one;
  }
  ::close(ends[0]);
  ::close(ends[1]);
  test::ChildProcess reader = startWorker([&] {
    cluster.enter(2);
    const auto own = connectCenter(keeper.id(), count, {.timeout = patience});
    std::vector<float> now(count);
    own->read(now.data());
    double left = 0;
    for (const float value : now) left += value;
    EXPECT_EQ(sum + left, static_cast<double>(((1 << hosts.size()) - 1) * count));
    EXPECT_EQ(own->counts().updates, hosts.size() * times);
    return true;
  });
  EXPECT_EQ(reader.wait(), 0);
}

TEST_F(CenterCluster, AHostThatIsCutOffHindersNobodyAndItsWorkerIsTold) {
  const VirtualCluster cluster(1, 3);
  const Keeper keeper(count, {.timeout = patience}, [&] { cluster.enter(1); });
  const Signal begun, isOff, wasTold, isOn;
  test::ChildProcess lost = startWorker([&] {
    cluster.enter(2);
    const auto own = connectCenter(keeper.id(), count, {.timeout = 1});
    std::vector<float> weights(count, 1.0f);
    exchange(*own, weights, 1.0f);
    begun.give();
    isOff.await();
    const std::string message = failureOf(taccTimeout, [&] {
      for (int i = 0; i < 1000; ++i) exchange(*own, weights, 1.0f);
    });
    EXPECT_THAT(message, AllOf(HasSubstr(fmt::format("process {}", keeper.process().pid())), HasSubstr("host tacc1"),
                               HasSubstr("has not answered for 1 s")));
    wasTold.give();
    isOn.await();
    // TCP sends again what was lost.
    return test::eventually([&] {
      try {
        exchange(*own, weights, 1.0f);
        return true;
      } catch (const Error& error) {
        EXPECT_EQ(error.result(), taccTimeout) << error.what();
        return testing::Test::HasFailure();
      }
    });
  });
  begun.await();
  cluster.unplug(2);
  isOff.give();
  test::ChildProcess other = startWorker([&] {
    cluster.enter(3);
    const auto own = connectCenter(keeper.id(), count, {.timeout = patience});
    std::vector<float> weights(count, 2.0f);
    for (int i = 0; i < 100; ++i) exchange(*own, weights, 1.0f);
    return true;
  });
  EXPECT_EQ(other.wait(), 0);
  wasTold.await();
  cluster.plug(2);
  isOn.give();
  EXPECT_EQ(lost.wait(), 0);
}

}  // namespace
}  // namespace tacc
