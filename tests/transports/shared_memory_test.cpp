#include "transports/shm/shared_memory.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "support/child_process.hpp"
#include "transports/shm/available_memory.hpp"

namespace tacc {
namespace {

using test::ChildProcess;
using testing::HasSubstr;

/// The message of the Error that the function throws; "" if it throws none.
template <class Function>
std::string messageOf(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccSystemError);
    return error.what();
  }
  return "";
}

TEST(SharedMemory, IsZeroedAndSeenByAnotherProcess) {
  const SharedMemory memory = SharedMemory::create(100'000, "test");
  ASSERT_EQ(memory.size(), 100'000u);
  shareWithChildren(memory.fd());
  EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.size(), [](std::byte b) { return b == std::byte{0}; }));
  ChildProcess child([&] {
    const SharedMemory own = SharedMemory::map(duplicate(memory.fd()), memory.size(), "test");
    own.data()[99'999] = std::byte{42};
    return own.data() != memory.data();
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(memory.data()[99'999], std::byte{42});
}

TEST(SharedMemory, PagesAreCommittedAtOnceOrOnTouch) {
  constexpr std::size_t bytes = 8 << 20;
  const auto committed = [](const SharedMemory& memory) {
    struct stat status {};
    EXPECT_EQ(::fstat(memory.fd(), &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  };
  EXPECT_GE(committed(SharedMemory::create(bytes, "test")), bytes);
  EXPECT_EQ(committed(SharedMemory::create(bytes, "test", Reserve::onTouch)), 0u);
}

TEST(SharedMemory, ClosesAndUnmapsAll) {
  const int before = test::countOpenDescriptors();
  {
    SharedMemory first = SharedMemory::create(4096, "test");
    SharedMemory second = std::move(first);
    EXPECT_EQ(first.data(), nullptr);
    EXPECT_EQ(first.fd(), -1);
    second.data()[0] = std::byte{1};
    first = SharedMemory::map(duplicate(second.fd()), 4096, "test");
    second.closeFd();
    EXPECT_EQ(second.fd(), -1);
    EXPECT_EQ(second.data()[0], first.data()[0]);
    second = SharedMemory();
  }
  EXPECT_EQ(test::countOpenDescriptors(), before);
}

TEST(SharedMemory, MoreThanTheMachineHasIsAnError) {
  const int before = test::countOpenDescriptors();
  EXPECT_THAT(messageOf([] { SharedMemory::create(std::size_t{1} << 50, "test"); }),
              HasSubstr("1125899906842624 bytes"));
  EXPECT_THAT(messageOf([] { SharedMemory::create(~std::size_t{0}, "test"); }), HasSubstr("not possible"));
  EXPECT_THAT(messageOf([] { SharedMemory::create(0, "test"); }), HasSubstr("not possible"));
  EXPECT_THAT(messageOf([] { SharedMemory::create(availableMemory(), "test"); }), HasSubstr("to be left"));
  EXPECT_EQ(test::countOpenDescriptors(), before);
}

TEST(SharedMemory, TheFileSizeLimitIsAnErrorAndNoSignal) {
  ChildProcess child([] {
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return messageOf([] { SharedMemory::create(2 << 20, "test"); }).find("ulimit -f") != std::string::npos;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(SharedMemory, TheAddressSpaceLimitIsAnError) {
  ChildProcess child([] {
    const rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};
    ::setrlimit(RLIMIT_AS, &limit);
    return messageOf([] { SharedMemory::create(std::size_t{1} << 30, "test"); }).find("cannot map") !=
           std::string::npos;
  });
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more address space than that";
#endif
  EXPECT_EQ(child.wait(), 0);
}

TEST(SharedMemory, AFileThatIsTooSmallIsRefused) {
  const SharedMemory memory = SharedMemory::create(4096, "test");
  try {
    SharedMemory::map(duplicate(memory.fd()), 8192, "test");
    ADD_FAILURE() << "mapped past the end of the file";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has 4096 bytes, 8192 were announced"));
  }
}

TEST(SharedMemory, ComesFromWhereTheEnvironmentSays) {
  const SharedMemory memory = SharedMemory::create(4096, "test");
  char target[256] = {};
  ASSERT_GT(::readlink(fmt::format("/proc/self/fd/{}", memory.fd()).c_str(), target, sizeof target - 1), 0);
  const char* setting = std::getenv("TACC_SHM");
  if (setting != nullptr && std::string_view(setting) == "file") {
    EXPECT_THAT(target, testing::StartsWith("/dev/shm/"));
    EXPECT_THAT(target, testing::EndsWith("(deleted)"));
  } else {
    EXPECT_THAT(target, testing::StartsWith("/memfd:tacc-test"));
  }
}

}  // namespace
}  // namespace tacc
