// What the tests of centers share: connecting by every way there is, and processes that work on a center.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/unique_id.hpp"
#include "easgd/center.hpp"
#include "easgd/elastic_kernels.hpp"
#include "support/child_process.hpp"

namespace tacc::test {

inline constexpr double patience = 60;  // time-out of what must succeed; a loaded machine may be slow

/// How the numbers of a center come to a worker of the same host.
enum class Way { mapped, unixSocket, tcp };

inline const char* nameOf(Way way) {
  return way == Way::mapped ? "mapped" : way == Way::unixSocket ? "unixSocket" : "tcp";
}

/// The id, as seen by a worker that comes this way. One that believes to be on another host takes TCP.
inline taccUniqueId idFor(Way way, const taccUniqueId& id) {
  if (way != Way::tcp) return id;
  UniqueIdContents contents = openUniqueId(id, IdPurpose::center);
  contents.host ^= 1;
  return sealUniqueId(contents);
}

inline std::unique_ptr<Center> connectBy(Way way, const taccUniqueId& id, std::size_t count,
                                         double timeout = patience) {
  if (way == Way::unixSocket) ::setenv("TACC_SHM", "off", 1);
  auto center = connectCenter(idFor(way, id), count, {.timeout = timeout});
  if (way == Way::unixSocket) ::unsetenv("TACC_SHM");
  EXPECT_EQ(center->isRemote(), way != Way::mapped);
  return center;
}

/// An exchange as taccCenterExchange makes it.
inline void exchange(Center& center, std::vector<float>& weights, float alpha) {
  center.exchange(weights.data(), alpha, [&](std::size_t first, std::size_t n, const float* difference) {
    elasticKernels().subtract(weights.data() + first, difference, n);
  });
}

/// A process that ends with its parent.
inline ChildProcess startWorker(const std::function<bool()>& body) {
  return ChildProcess([&] {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return body() && !testing::Test::HasFailure();
  });
}

/// The message of the Error that `work` throws, which must be of this result; "" when it throws none.
template <class Work>
std::string failureOf(taccResult_t expected, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), expected) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

/// Whether it holds within the patience of a test.
inline bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 1000 * static_cast<int>(patience); ++i) {
    if (holds()) return true;
    ::usleep(1000);
  }
  return false;
}

}  // namespace tacc::test
