// What the tests of centers share: connecting by every route there is, and processes that work on a center.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/bootstrap/unique_id.hpp"
#include "core/error.hpp"
#include "easgd/center.hpp"
#include "easgd/elastic_kernels.hpp"
#include "support/child_process.hpp"

namespace tacc::test {

inline constexpr double patience = 60;  // time-out of what must succeed; a loaded machine may be slow

/// How the numbers of a center come to a worker of the same host.
enum class Route { mapped, unixSocket, tcp };

inline const char* nameOf(Route route) {
  return route == Route::mapped ? "mapped" : route == Route::unixSocket ? "unixSocket" : "tcp";
}

/// The id, as seen by a worker that takes that route. One that believes to be on another host takes TCP.
inline taccUniqueId idFor(Route route, const taccUniqueId& id) {
  if (route != Route::tcp) return id;
  UniqueIdContents contents = openUniqueId(id, IdPurpose::center);
  contents.host ^= 1;
  return sealUniqueId(contents);
}

/// A variable of the environment, for as long as it lives.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

inline std::unique_ptr<Center> connectBy(Route route, const taccUniqueId& id, std::size_t count,
                                         double timeout = patience) {
  std::optional<Setting> setting;
  if (route == Route::unixSocket) setting.emplace("TACC_SHM", "off");
  auto center = connectCenter(idFor(route, id), count, {.timeout = timeout});
  EXPECT_EQ(center->isRemote(), route != Route::mapped);
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

/// A process that keeps a center until it is killed, or told to destroy it. Tests that fork have one, rather than a
/// thread that may hold the allocator's locks in that moment.
class Keeper {
 public:
  Keeper(std::size_t count, const CenterOptions& options, const std::function<void()>& before = {},
         const float* initial = nullptr)
      : process_(startWorker([&] {
          if (before) before();
          {
            const KeptCenter kept = keepCenter(count, initial, options);
            if (::write(id_[1], &kept.id, sizeof kept.id) != sizeof kept.id) return false;
            destroy_.await();
          }
          destroyed_.give();
          ::pause();
          return true;
        })) {
    EXPECT_EQ(::read(id_[0], &made_, sizeof made_), static_cast<ssize_t>(sizeof made_));
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() {
    ::close(id_[0]);
    ::close(id_[1]);
  }

  const taccUniqueId& id() const { return made_; }
  const ChildProcess& process() const { return process_; }
  void destroy() const {
    destroy_.give();
    destroyed_.await();
  }
  void stop() const {
    process_.kill(SIGSTOP);
    int status = 0;
    ::waitpid(process_.pid(), &status, WUNTRACED);
  }

 private:
  struct Pipe {
    Pipe() { EXPECT_EQ(::pipe(ends), 0); }
    int operator[](int end) const { return ends[end]; }
    int ends[2];
  };
  Pipe id_;
  Signal destroy_, destroyed_;
  taccUniqueId made_{};
  ChildProcess process_;
};

/// Whether it holds within the patience of a test.
inline bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 1000 * static_cast<int>(patience); ++i) {
    if (holds()) return true;
    ::usleep(1000);
  }
  return false;
}

}  // namespace tacc::test
