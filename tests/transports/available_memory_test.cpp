#include "transports/shm/available_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tacc {
namespace {

constexpr std::size_t mebi = std::size_t{1} << 20;

TEST(AvailableMemory, OfThisMachineIsBetweenNothingAndAll) {
  const std::size_t pages = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES));
  const std::size_t machine = pages * static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
  EXPECT_GT(availableMemory(), mebi);
  EXPECT_LE(availableMemory(), 2 * machine);  // with swap
}

/// A machine made of files.
class RecordedMachine : public testing::Test {
 protected:
  RecordedMachine() {
    char pattern[] = "/tmp/tacc-machine-XXXXXX";
    root_ = ::mkdtemp(pattern);
    write("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4194304 kB\nSwapFree: 1048576 kB\n");
  }
  ~RecordedMachine() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::size_t availableMebi() const { return availableMemory(root_) / mebi; }

  std::string root_;
};

TEST_F(RecordedMachine, WithoutGroupsHasMemoryAndSwap) { EXPECT_EQ(availableMebi(), 5120u); }

TEST_F(RecordedMachine, TheNarrowestGroupCounts) {
  write("/proc/self/cgroup", "0::/job/step\n");
  write("/sys/fs/cgroup/job/step/memory.max", "max\n");
  write("/sys/fs/cgroup/job/step/memory.current", "1048576\n");
  EXPECT_EQ(availableMebi(), 5120u);
  write("/sys/fs/cgroup/job/memory.max", std::to_string(1000 * mebi));
  write("/sys/fs/cgroup/job/memory.current", std::to_string(400 * mebi));
  EXPECT_EQ(availableMebi(), 600u);
  // Clean file pages can be dropped.
  write("/sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file " + std::to_string(100 * mebi) + "\n");
  EXPECT_EQ(availableMebi(), 700u);
  write("/sys/fs/cgroup/job/memory.current", std::to_string(2000 * mebi));
  EXPECT_EQ(availableMebi(), 0u);
}

TEST_F(RecordedMachine, AContainerSeesItsGroupAsTheRoot) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", std::to_string(64 * mebi));
  write("/sys/fs/cgroup/memory.current", std::to_string(mebi));
  EXPECT_EQ(availableMebi(), 63u);
}

TEST_F(RecordedMachine, VersionOneGroupsCountToo) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/y\n");
  write("/sys/fs/cgroup/memory/y/memory.limit_in_bytes", std::to_string(300 * mebi));
  write("/sys/fs/cgroup/memory/y/memory.usage_in_bytes", std::to_string(100 * mebi));
  EXPECT_EQ(availableMebi(), 200u);
}

}  // namespace
}  // namespace tacc
