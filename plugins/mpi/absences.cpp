#include "absences.hpp"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <vector>

#include "communicators.hpp"
#include "meeting.hpp"

namespace tacc::mpi {
namespace {

constexpr int filesToMeet = 6;  // with them a rank can tell the others that it needs more

constexpr std::size_t mostReasons = 8;  // that a process tells: a program may make thousands of communicators

/// Which reason this is, from 1 on; 0 where this process has told it before, whatever function found it, or enough
/// others.
std::size_t numberOfNews(const std::string& sentence) {
  const std::size_t function = sentence.find(": ");
  const std::string why = sentence.substr(function == std::string::npos ? 0 : function);
  static std::mutex mutex;
  static std::vector<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.size() == mostReasons || std::ranges::find(said, why) != said.end()) return 0;
  said.push_back(why);
  return said.size();
}

}  // namespace

bool hasFilesToMeet() noexcept {
  std::array<int, filesToMeet> opened{};
  int number = 0;
  while (number < filesToMeet && (opened[static_cast<std::size_t>(number)] = ::eventfd(0, EFD_CLOEXEC)) >= 0) ++number;
  for (int i = 0; i < number; ++i) ::close(opened[static_cast<std::size_t>(i)]);
  return number == filesToMeet;
}

std::string describeNoFiles() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return "it needs " + std::to_string(filesToMeet) + " files more than are open, and process " +
         std::to_string(::getpid()) + " may open " + std::to_string(limit.rlim_cur) + "; raise ulimit -n";
}

void leaveToMpi(Communicator& communicator, int speaker, const std::string& why) noexcept {
  communicator.passed = Passed::noCommunicator;
  const std::size_t number = speaker == communicator.rank ? numberOfNews(why) : 0;
  if (number == 0) return;
  std::fprintf(stderr, "tacc: a communicator of %d ranks stays with MPI, as rank %d could not join: %s\n",
               communicator.ranks, communicator.rank, why.c_str());
  if (number == mostReasons) std::fprintf(stderr, "tacc: this was the last reason of this kind that is told\n");
}

std::optional<int> firstInTrouble(const Communicator& communicator, taccResult_t result) {
  const int kind = result == taccSuccess ? 2 : result == taccRemoteError ? 1 : 0;
  struct {
    int kind, rank;
  } mine{kind, communicator.rank}, first{};
  reduceOfAll(&mine, &first, 1, MPI_2INT, MPI_MINLOC, communicator.mpi);
  if (first.kind == 2) return std::nullopt;
  return first.rank;
}

}  // namespace tacc::mpi
