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

namespace tacc::mpi {
namespace {

constexpr int filesToMeet = 6;  // with them a rank can tell the others that it needs more

/// Whether this process has not said so before, whatever function found it, nor too much: a program may make thousands
/// of communicators, and one reason is mostly that of all.
bool isNews(const std::string& sentence) {
  constexpr std::size_t most = 8;
  const std::size_t function = sentence.find(": ");
  const std::string why = sentence.substr(function == std::string::npos ? 0 : function);
  static std::mutex mutex;
  static std::vector<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.size() == most || std::ranges::find(said, why) != said.end()) return false;
  said.push_back(why);
  return true;
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
  if (speaker != communicator.rank || !isNews(why)) return;
  std::fprintf(stderr, "tacc: a communicator of %d ranks stays with MPI, as rank %d could not join: %s\n",
               communicator.ranks, communicator.rank, why.c_str());
}

std::optional<int> firstInTrouble(const Communicator& communicator, taccResult_t result) {
  const int kind = result == taccSuccess ? 2 : result == taccRemoteError ? 1 : 0;
  struct {
    int kind, rank;
  } mine{kind, communicator.rank}, first{};
  PMPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MINLOC, communicator.mpi);
  if (first.kind == 2) return std::nullopt;
  return first.rank;
}

}  // namespace tacc::mpi
