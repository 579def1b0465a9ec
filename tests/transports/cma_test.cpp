#include "transports/shm/cma.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "support/child_process.hpp"
#include "support/first_thread.hpp"

namespace tacc {
namespace {

using test::ChildProcess;
using test::Signal;

constexpr std::uint64_t expected = 0x0123456789abcdefull;

/// A child whose copy of `numbers` differs from the parent's.
ChildProcess writeInChild(std::vector<std::uint64_t>& numbers, const Signal& written) {
  return ChildProcess([&] {
    for (std::uint64_t& number : numbers) number = expected + static_cast<std::uint64_t>(&number - numbers.data());
    written.give();
    ::pause();
    return true;
  });
}

TEST(Cma, ReadsTheMemoryOfAChild) {
  std::vector<std::uint64_t> numbers(300'000);
  const Signal written;
  ChildProcess child = writeInChild(numbers, written);
  written.await();
  if (!probeCma(child.pid(), numbers.data(), expected)) GTEST_SKIP() << "this system refuses process_vm_readv";
  EXPECT_EQ(numbers.front(), 0u);
  EXPECT_FALSE(probeCma(child.pid(), numbers.data(), expected + 1));

  std::vector<std::uint64_t> read(numbers.size());
  readRemote(child.pid(), read.data(), numbers.data(), read.size() * sizeof read[0]);
  for (std::size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], expected + i);
}

TEST(Cma, ReadsAndWritesMemoryOfAProcessWhoseFirstThreadHasEnded) {
  std::vector<std::uint64_t> numbers(3);
  const Signal ended, written;
  ChildProcess child([&]() -> bool {
    numbers[0] = expected;
    test::endFirstThread([&] {
      ended.give();
      written.await();
      return numbers[1] == expected + 1 ? 0 : 1;
    });
  });
  ended.await();
  if (!probeCma(::getpid(), &expected, expected)) GTEST_SKIP() << "this system refuses process_vm_readv";
  EXPECT_TRUE(probeCma(child.pid(), numbers.data(), expected));
  std::uint64_t value = 0;
  readRemote(child.pid(), &value, numbers.data(), sizeof value);
  EXPECT_EQ(value, expected);
  value = expected + 1;
  EXPECT_TRUE(tryWriteRemote(child.pid(), &numbers[1], &value, sizeof value));
  written.give();
  EXPECT_EQ(child.wait(), 0);
}

TEST(Cma, AnUnmappedAddressIsAnError) {
  std::vector<std::uint64_t> numbers(1);
  const Signal written;
  ChildProcess child = writeInChild(numbers, written);
  written.await();
  std::uint64_t value = 0;
  try {
    readRemote(child.pid(), &value, nullptr, sizeof value);
    ADD_FAILURE() << "read at address 0";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccSystemError);
    EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(child.pid())));
  }
  EXPECT_FALSE(probeCma(child.pid(), nullptr, 0));
}

TEST(Cma, MemoryThatOnlyItsOwnProcessReadsSaysWhatDoesWithout) {
  const auto file = static_cast<int>(::syscall(SYS_memfd_secret, 0));
  if (file < 0) GTEST_SKIP() << "this system has no memfd_secret";
  constexpr std::size_t bytes = 4096;
  ASSERT_EQ(::ftruncate(file, bytes), 0);
  void* const secret = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(secret, MAP_FAILED);
  std::uint64_t value = 0;
  try {
    readRemote(::getpid(), &value, secret, sizeof value);
    ADD_FAILURE() << "read what nobody may read";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccSystemError);
    EXPECT_THAT(error.what(), testing::HasSubstr("TACC_CMA=off"));
  }
  ::munmap(secret, bytes);
  ::close(file);
}

TEST(Cma, WhatIsNoMoreAllowedSaysWhatDoesWithout) {
  std::vector<std::uint64_t> numbers(1);
  const Signal written;
  ChildProcess shy([&] {
    ::prctl(PR_SET_DUMPABLE, 0);
    written.give();
    ::pause();
    return true;
  });
  written.await();
  ChildProcess reader([&] {
    constexpr uid_t nobody = 65534;  // root may look at all
    if (::geteuid() == 0 && ::setuid(nobody) != 0) return false;
    std::uint64_t value = 0;
    try {
      readRemote(shy.pid(), &value, numbers.data(), sizeof value);
      return false;
    } catch (const Error& error) {
      return error.result() == taccSystemError && std::string(error.what()).find("TACC_CMA=off") != std::string::npos;
    }
  });
  EXPECT_EQ(reader.wait(), 0);
}

TEST(Cma, AProcessThatIsGoneIsARemoteError) {
  ChildProcess child([] { return true; });
  const pid_t pid = child.pid();
  child.wait();
  std::uint64_t value = 0;
  EXPECT_FALSE(probeCma(pid, &value, 0));
  try {
    readRemote(pid, &value, &value, sizeof value);
    ADD_FAILURE() << "read from a process that is gone";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccRemoteError);
  }
}

}  // namespace
}  // namespace tacc
