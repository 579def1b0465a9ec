// A thread's stack is looked for once, not in each call that may need much of it: to find that of a process's first
// thread takes longer than such a call.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <tacc/tacc.h>

#include <atomic>

namespace {
std::atomic<int> lookups{0};
}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/// Stands before the C library's, for the library too.
extern "C" __attribute__((visibility("default"))) int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) {
  static auto* const next = reinterpret_cast<decltype(&pthread_getattr_np)>(::dlsym(RTLD_NEXT, "pthread_getattr_np"));
  ++lookups;
  return next(thread, attributes);
}

namespace {

int lookupsOfSplit(taccComm_t comm) {
  const int before = lookups;
  taccComm_t part = nullptr;
  EXPECT_EQ(taccCommSplit(comm, 0, 0, &part, nullptr), taccSuccess) << taccGetLastError(nullptr);
  const int found = lookups - before;
  EXPECT_EQ(taccCommDestroy(part), taccSuccess);
  return found;
}

TEST(RoomyStack, IsLookedForAgainWhereItsLimitHasChanged) {
  taccComm_t comm = nullptr;
  ASSERT_EQ(taccCommInitAll(&comm, 1, nullptr), taccSuccess) << taccGetLastError(nullptr);
  (void)lookupsOfSplit(comm);
  EXPECT_EQ(lookupsOfSplit(comm), 0);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_STACK, &limit), 0);
  const rlimit before = limit;
  limit.rlim_cur = (limit.rlim_cur == RLIM_INFINITY ? rlim_t{64} << 20 : limit.rlim_cur) - (rlim_t{1} << 20);
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &limit), 0);
  EXPECT_EQ(lookupsOfSplit(comm), 1);
  EXPECT_EQ(lookupsOfSplit(comm), 0);
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &before), 0);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

}  // namespace

#endif
