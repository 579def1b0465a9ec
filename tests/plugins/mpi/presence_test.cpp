// Processes that show that they have the library.
#include "presence.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace tacc::mpi {
namespace {

/// A process that shows itself, where it is to, until this one ends.
class Other {
 public:
  explicit Other(bool shows) {
    std::array<int, 2> ready{}, over{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    EXPECT_EQ(::pipe(over.data()), 0);
    process = ::fork();
    char byte = 0;
    if (process == 0) {
      ::close(over[1]);
      if (shows) showPresence();
      ::_exit(::write(ready[1], &byte, 1) == 1 && ::read(over[0], &byte, 1) == 0 ? 0 : 1);
    }
    ::close(over[0]);
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
    over_ = over[1];
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() {
    ::close(over_);
    int status = -1;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    EXPECT_EQ(status, 0);
  }

  int process;

 private:
  int over_;
};

TEST(Presence, IsSeenUntilItIsHidden) {
  EXPECT_FALSE(isPresent(::getpid()));
  showPresence();
  EXPECT_TRUE(isPresent(::getpid()));
  showPresence();
  hidePresence();
  EXPECT_FALSE(isPresent(::getpid()));
  hidePresence();
}

TEST(Presence, IsEachProcesssOwn) {
  int ended = 0;
  {
    const Other shown(true), silent(false);
    EXPECT_TRUE(isPresent(shown.process));
    EXPECT_FALSE(isPresent(silent.process));
    EXPECT_FALSE(isPresent(::getpid()));
    ended = shown.process;
  }
  EXPECT_FALSE(isPresent(ended));
}

TEST(Presence, TakesNoneOfFewDescriptors) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit few{128, files.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  showPresence();
  EXPECT_FALSE(isPresent(::getpid()));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
}

}  // namespace
}  // namespace tacc::mpi
