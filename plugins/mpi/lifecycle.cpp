// The beginning and the end of MPI, and what all ranks agree on between.
#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/mpi_variables.hpp"
#include "elements.hpp"
#include "meeting.hpp"
#include "memory.hpp"
#include "plugin.hpp"
#include "presence.hpp"
#include "roll_call.hpp"
#include "siblings.hpp"
#include "types.hpp"
#include "wrappers.hpp"

namespace tacc::mpi {

Plugin& theOnly = *new Plugin;

constinit thread_local CallingThread theThread;

int failCall(const char* function, const Communicator& communicator, const std::string& why) noexcept {
  std::fprintf(stderr, "tacc: %s, rank %d of %d: %s\n", function, communicator.rank, communicator.ranks, why.c_str());
  SharedMessages::keepRange(communicator);
  PMPI_Comm_call_errhandler(communicator.mpi, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

int failCall(const char* function, const Communicator& communicator) noexcept {
  return failCall(function, communicator, taccGetLastError(communicator.tacc));
}

std::optional<Contests::Turn> settleContest(Function function, const char* name, std::size_t bytes,
                                            Communicator& communicator, const Repeated* repeated, int* code) {
  Contests& contests = communicator.contests;
  try {
    taccResult_t result = taccSuccess;
    if (Contests::hasOwnCounts(function)) {
      auto most = static_cast<double>(contests.usualBytes(function));
      result = agreeOnMost({&most, 1}, communicator);
      bytes = static_cast<std::size_t>(most);
    }
    if (result == taccSuccess && contests.isAgain(function, bytes)) {
      // Also for those of other calls, on any communicator: together they must cost little.
      const double now = clockSeconds(), others = plugin().nextContest.load(std::memory_order_relaxed) - now;
      std::array<double, 2> agreed{std::max(contests.wait(function, bytes, now), others),
                                   contests.sinceLook(function, bytes, now)};
      result = agreeOnMost(agreed, communicator);
      if (result == taccSuccess && agreed[0] > 0) return contests.keep(function, bytes, now, agreed[1]);
    }
    Outcome outcome;
    if (result == taccSuccess)
      result = holdContest(function, bytes, communicator, repeated, contests.before(function, bytes), outcome);
    if (result == taccSuccess) {
      std::atomic<double>& next = plugin().nextContest;
      const double ofThis = contests.decide(outcome, clockSeconds());
      next.store(std::max(ofThis, next.load(std::memory_order_relaxed)), std::memory_order_relaxed);
      if (outcome.mpi > 0) {
        std::optional<std::size_t>& line = contests.line(function, bytes);
        line = plugin().report.tell(outcome, line);
      }
      return outcome.isMpiFaster ? Contests::Turn::mpi : Contests::Turn::tacc;
    }
    *code = failCall(name, communicator);
  } catch (const std::exception& error) {
    *code = failCall(name, communicator, error.what());
  }
  return std::nullopt;
}

namespace {

/// A thread has to wake up for each of them, and the caller at its end, which takes longer than MPI needs for small
/// ones. Sums gain more than others.
struct LeastBytes {
  int summed, moved;
};
constexpr LeastBytes usualLeastWithRequest = {65536, 4 << 20};

/// A contest takes some dozen calls, which this many before it pay for.
constexpr int usualCallsBeforeContest = 100;

std::string_view valueOf(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// How many bytes make it worth to take over collectives with requests. Nothing for what it must not be.
std::optional<LeastBytes> leastBytesWithRequest() {
  const std::string_view text = valueOf("TACC_MPI_NONBLOCKING");
  if (text.empty()) return usualLeastWithRequest;
  const std::optional<int> bytes = nonblockingIn(text);
  return bytes ? std::optional<LeastBytes>(LeastBytes{*bytes, *bytes}) : std::nullopt;
}

std::optional<int> callsBeforeContest() {
  const std::string_view text = valueOf("TACC_MPI_CONTEST");
  return text.empty() ? usualCallsBeforeContest : contestIn(text);
}

/// A variable whose value is none that it may have. tacc itself would refuse it in each communicator.
struct WrongVariable {
  const char* variable;
  std::string_view allowed;
};

std::optional<WrongVariable> firstWrong(std::optional<Mode> mode, bool hasLeastBytes, bool hasContests) {
  if (!mode) return WrongVariable{"TACC_MPI", allowedModes};
  if (!hasLeastBytes) return WrongVariable{"TACC_MPI_NONBLOCKING", allowedNonblocking};
  if (!hasContests) return WrongVariable{"TACC_MPI_CONTEST", allowedContest};
  return std::nullopt;
}

/// "rank 1, 3", at most ten of them.
std::string listOf(const std::vector<int>& ranks) {
  constexpr std::size_t most = 10;
  std::string text = "rank ";
  for (std::size_t i = 0; i < std::min(most, ranks.size()); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > most) text += " and " + std::to_string(ranks.size() - most) + " others";
  return text;
}

/// Agrees with all ranks on whether and how calls are taken over. Every rank takes part, also one where this is
/// switched off: ranks would not meet otherwise.
void agreeOnUse() {
  Plugin& self = plugin();
  self.hasBegun = true;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string_view modeText = valueOf("TACC_MPI");
  const std::optional<Mode> mode = modeText.empty() ? Mode::on : modeIn(modeText);
  self.reports = mode == Mode::report && rank == 0;
  // Ranks that were not preloaded take part in nothing.
  if (const std::vector<int> lacking = ranksWithoutAnswer(); !lacking.empty()) {
    int first = 0;  // of those that have it
    while (std::ranges::find(lacking, first) != lacking.end()) ++first;
    if (rank == first)
      std::fprintf(stderr,
                   "tacc: libtacc_mpi is preloaded into some ranks only (%s has none), so all calls go to MPI\n",
                   listOf(lacking).c_str());
    return;
  }
  if (const std::string lacking = ranksWithoutPlugin(); !lacking.empty()) {
    if (isFirstWithPlugin())
      std::fprintf(stderr,
                   "tacc: libtacc_mpi is preloaded into some ranks only (%s has none), so all calls go to MPI\n",
                   lacking.c_str());
    return;
  }
  learnTypes();
  const bool packsPlainly = arePackedPlainly();
  if (!packsPlainly && rank == 0)
    std::fprintf(stderr, "tacc: MPI_Pack of this MPI adds to the data, so all calls go to MPI\n");
  const bool usesMpiTransport = valueOf("TACC_TRANSPORT") == "mpi";
  const std::optional<LeastBytes> leastBytes = leastBytesWithRequest();
  const std::optional<int> contestAfter = callsBeforeContest();
  const std::optional<WrongVariable> wrong = firstWrong(mode, leastBytes.has_value(), contestAfter.has_value());
  const bool isWanted = !wrong && mode != Mode::off;
  // The same bits in every run: who sums must not depend on times.
  const int contests = valueOf("TACC_REPRODUCIBLE") == "on" ? 0 : contestAfter.value_or(0);
  // The least of each; of bytes the most.
  const LeastBytes bytes = leastBytes.value_or(LeastBytes{INT_MAX, INT_MAX});
  const std::string wrapper = self.passAllOn == nullptr ? "" : wrapperOfCompletions(self.passAllOn);
  // Ranks may have asked for different ones. With the highest on any rank no order of the calls is relied on.
  int level = MPI_THREAD_MULTIPLE;
  PMPI_Query_thread(&level);
  std::array<int, 9> mine{isWanted && packsPlainly,
                          usesMpiTransport,
                          !isWanted,
                          -bytes.summed,
                          contests,
                          -bytes.moved,
                          wrong ? rank : INT_MAX,
                          wrapper.empty() ? INT_MAX : rank,
                          level != MPI_THREAD_MULTIPLE};
  std::array<int, 9> least{};
  reduceOfAll(mine.data(), least.data(), static_cast<int>(mine.size()), MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (wrong && least[6] == rank)
    std::fprintf(stderr, "tacc: %s is \"%s\" on rank %d; it must be %s. All calls go to MPI\n", wrong->variable,
                 std::string(valueOf(wrong->variable)).c_str(), rank, std::string(wrong->allowed).c_str());
  if (rank == 0 && least[0] == 0 && least[2] == 0 && least[6] == INT_MAX && packsPlainly)
    std::fprintf(stderr, "tacc: TACC_MPI is off on some ranks and on on others, so all calls go to MPI\n");
  self.isActive = least[0] != 0;
  if (!self.isActive) return;
  if (least[7] == rank)
    std::fprintf(stderr, "tacc: %s on rank %d, so collectives with requests go to MPI\n", wrapper.c_str(), rank);
  self.report.open(level == MPI_THREAD_MULTIPLE, self.reports);
  self.communicators.open(least[1] != 0, least[8] != 0);
  self.requests.open();
  // Over MPI's messages the thread that carries a collective on would have to call MPI.
  self.takesRequests = least[1] == 0 && least[7] == INT_MAX;
  self.whyNoRequests = least[1] != 0 ? Passed::mpiTransport : Passed::wrapped;
  self.contestAfter = static_cast<std::uint32_t>(least[4]);
  const auto bytesOf = [](int most) { return most == -INT_MAX ? SIZE_MAX : static_cast<std::size_t>(-most); };
  self.leastWithRequest = bytesOf(least[3]);
  self.leastMoved = bytesOf(least[5]);
  openMemory();
}

/// Once MPI is there.
void start() {
  agreeOnUse();
  const Plugin& self = plugin();
  if (!self.isActive && !self.reports && self.passAllOn != nullptr) self.passAllOn();
}

void end() noexcept {
  Plugin& self = plugin();
  if (self.isActive) {
    closeMemory();
    const Inside inside;
    self.requests.close();
    self.communicators.close();
  }
  self.isActive = false;
  if (!self.reports) return;
  int ranks = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string title = "# tacc: calls of rank 0 of " + std::to_string(ranks);
  std::fputs((self.report.text(title) + textOfMemory()).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace
}  // namespace tacc::mpi

/// From the dispatcher, before any call.
extern "C" __attribute__((visibility("default"))) void taccMpi_setPassAllOn(void (*passAllOn)()) {
  tacc::mpi::plugin().passAllOn = passAllOn;
}

TACC_MPI_ENTRY taccMpi_Init(int* argc, char*** argv) {
  tacc::mpi::answerRollCall();
  tacc::mpi::showPresence();
  const int code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) tacc::mpi::start();
  tacc::mpi::hidePresence();
  return code;
}

TACC_MPI_ENTRY taccMpi_Init_thread(int* argc, char*** argv, int required, int* provided) {
  tacc::mpi::answerRollCall();
  tacc::mpi::showPresence();
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) tacc::mpi::start();
  tacc::mpi::hidePresence();
  return code;
}

/// Whether the program has begun MPI by a name that is taken over.
TACC_MPI_ENTRY taccMpi_hasBegun() { return tacc::mpi::plugin().hasBegun ? 1 : 0; }

TACC_MPI_ENTRY taccMpi_Finalize() {
  tacc::mpi::end();
  return PMPI_Finalize();
}

TACC_MPI_ENTRY taccMpi_Comm_free(MPI_Comm* comm) {
  tacc::mpi::Plugin& plugin = tacc::mpi::plugin();
  return plugin.isActive ? plugin.communicators.end(comm, PMPI_Comm_free) : PMPI_Comm_free(comm);
}

TACC_MPI_ENTRY taccMpi_Comm_disconnect(MPI_Comm* comm) {
  tacc::mpi::Plugin& plugin = tacc::mpi::plugin();
  return plugin.isActive ? plugin.communicators.end(comm, PMPI_Comm_disconnect) : PMPI_Comm_disconnect(comm);
}
