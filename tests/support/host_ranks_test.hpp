// Tests of ranks on virtual hosts, for several layouts.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/virtual_cluster.hpp"

namespace tacc::test {

/// Which host each rank is on; hosts are counted from 1.
struct Layout {
  const char* name;
  std::vector<int> hosts;
};

/// Skips itself where there can be no virtual hosts.
class HostRanksTest : public testing::TestWithParam<Layout> {
 protected:
  void SetUp() override {
    if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  }
  const std::vector<int>& hosts() const { return GetParam().hosts; }
  int ranks() const { return static_cast<int>(hosts().size()); }
  /// The same for all tests of a suite that name one rate: to make one takes longer than most of them. What was on a
  /// host has ended with its test.
  static const VirtualCluster& fourHosts(int hostMbit = 0) {
    std::unique_ptr<VirtualCluster>& hosts = fourHosts_[hostMbit];
    if (!hosts) hosts = std::make_unique<VirtualCluster>(1, 4, hostMbit);
    return *hosts;
  }
  static void TearDownTestSuite() { fourHosts_.clear(); }

 private:
  static inline std::map<int, std::unique_ptr<VirtualCluster>> fourHosts_;
};

/// What most of what runs over several hosts should be tried on: a rank a host, lanes in both orders, uneven hosts.
inline auto usualLayouts() {
  return testing::Values(Layout{"oneEach", {1, 2, 3, 4}}, Layout{"blocks", {1, 1, 2, 2}},
                         Layout{"cyclic", {1, 2, 1, 2, 1, 2}}, Layout{"uneven", {2, 1, 1, 3, 1}},
                         Layout{"two", {1, 2}});
}

inline std::string layoutName(const testing::TestParamInfo<Layout>& suite) { return suite.param.name; }

}  // namespace tacc::test
