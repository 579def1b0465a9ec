// What the bootstrap's tests share: ranks that join, and the Errors they get.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "support/child_process.hpp"

namespace tacc::test {

inline constexpr double patience = 20.0;  // time-out of what must succeed; a loaded machine may be slow

inline std::span<const std::byte> bytesOf(const int& value) { return std::as_bytes(std::span(&value, 1)); }

/// The descriptor that this thread keeps from its first wait on, before others are counted.
inline void openBell() {
  std::vector<pollfd> nothing;
  waitFor(nothing, Interrupt(0), Deadline(0));
}

/// Gathers the ranks' numbers and compares.
inline bool gatherNumbers(Bootstrap& bootstrap, int ranks, int rank, int factor) {
  const int mine = rank * factor + 1;
  const std::vector<std::byte> all = bootstrap.allGather(bytesOf(mine));
  if (all.size() != static_cast<std::size_t>(ranks) * sizeof(int)) return false;
  for (int r = 0; r < ranks; ++r) {
    int theirs = 0;
    std::memcpy(&theirs, all.data() + static_cast<std::size_t>(r) * sizeof(int), sizeof theirs);
    if (theirs != r * factor + 1) return false;
  }
  return true;
}

/// The message of the Error that joining (and then `work`) throws; "" if none. Checks the result.
template <class Work>
std::string failureOf(taccResult_t expected, const taccUniqueId& id, int ranks, int rank, double timeout,
                      const Work& work) {
  try {
    Bootstrap bootstrap(id, ranks, rank, timeout);
    work(bootstrap);
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), expected) << error.what();
    return error.what();
  }
  return "";
}

inline std::string joinFailure(taccResult_t expected, const taccUniqueId& id, int ranks, int rank, double timeout) {
  return failureOf(expected, id, ranks, rank, timeout, [](Bootstrap&) {});
}

/// Children whose Error must contain all of `texts`; their number must come out as status 0.
inline ChildProcess expectFailure(taccResult_t result, const taccUniqueId& id, int ranks, int rank, double timeout,
                                  const std::vector<std::string>& texts) {
  return ChildProcess([=] {
    const std::string message = joinFailure(result, id, ranks, rank, timeout);
    bool all = !testing::Test::HasFailure();
    for (const std::string& text : texts) all = all && message.find(text) != std::string::npos;
    if (!all) std::fprintf(stderr, "rank %d got: %s\n", rank, message.c_str());
    return all;
  });
}

/// Waits until the other end closes, which is all that a stranger may get.
inline bool isClosedByPeer(int fd) {
  char buffer[512];
  for (;;) {
    const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
    if (count == 0 || (count < 0 && errno == ECONNRESET)) return true;
    if (count < 0 && errno != EAGAIN) return false;
    pollfd socket{fd, POLLIN, 0};
    if (count < 0 && ::poll(&socket, 1, static_cast<int>(1000 * patience)) != 1) return false;
  }
}

}  // namespace tacc::test
