#include "ranks.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "errors.hpp"

namespace tacc::train {
namespace {

/// Joins, runs the body, and leaves. A rank that fails tells the others by ending the communicator.
bool runRank(const std::function<taccResult_t(taccComm_t*)>& join, const std::function<void(taccComm_t)>& body) {
  taccComm_t comm = nullptr;
  try {
    check(join(&comm));
    body(comm);
    check(taccCommDestroy(std::exchange(comm, nullptr)));
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tacc_train: %s\n", error.what());
    std::fflush(stderr);
    if (comm != nullptr) taccCommAbort(comm);
    return false;
  }
}

}  // namespace

bool forkRanks(int ranks, const std::function<void(taccComm_t)>& body) {
  taccUniqueId id;
  check(taccGetUniqueId(&id));
  std::fflush(nullptr);  // or children would write it again
  const pid_t parent = ::getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      const bool good = runRank([&](taccComm_t* comm) { return taccCommInitRank(comm, ranks, id, rank); }, body);
      std::fflush(nullptr);
      ::_exit(good ? 0 : 1);
    }
    if (child < 0) {
      const int code = errno;
      for (const pid_t started : children) ::kill(started, SIGKILL);
      fail("cannot start rank {} of {}: {}", rank, ranks, std::strerror(code));
    }
    children.push_back(child);
  }
  // The library tells every rank when another one has died, so all of them end.
  bool good = true;
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    while (::waitpid(children[rank], &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) fmt::print(stderr, "tacc_train: rank {} was ended by signal {}\n", rank, WTERMSIG(status));
    good = good && status == 0;
  }
  return good;
}

bool joinRanks(const std::function<void(taccComm_t)>& body) {
  return runRank([](taccComm_t* comm) { return taccCommInitEnv(comm, nullptr); }, body);
}

}  // namespace tacc::train
