#include "report.hpp"

#include <fmt/format.h>

namespace tacc::mpi {
namespace {

#define TACC_MPI_NAME(name) "MPI_" #name,
constexpr std::array<const char*, static_cast<std::size_t>(Function::count)> functionNames{
    TACC_MPI_COLLECTIVES(TACC_MPI_NAME) TACC_MPI_COLLECTIVES_WITH_REQUEST(TACC_MPI_NAME)};
#undef TACC_MPI_NAME

constexpr std::array<const char*, static_cast<std::size_t>(Passed::count)> reasons{
    "switched off",
    "one rank alone",
    "intercommunicator",
    "type that tacc does not reduce",
    "other operation",
    "arguments for MPI to judge",
    "no tacc communicator",
    "called inside another call",
    "too small to gain",
    "no tacc communicator yet",
    "messages go over MPI",
    "faster in MPI",
    "not yet known how much others move",
    "ranks that were started apart",
    "ended by another's functions",
    "first calls of some of the ranks",
};

}  // namespace

void Report::count(Function function, std::size_t bytes) noexcept {
  Row& row = rowOf(function);
  add(row.taken, 1);
  add(row.bytes, bytes);
}

void Report::count(Function function, Passed why) noexcept {
  add(rowOf(function).passed[static_cast<std::size_t>(why)], 1);
}

/// Some nanoseconds less where nobody else counts.
void Report::add(std::atomic<std::uint64_t>& number, std::uint64_t more) const noexcept {
  if (hasThreads_)
    number.fetch_add(more, std::memory_order_relaxed);
  else
    number.store(number.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

std::string Report::text(const std::string& title) {
  std::string text =
      title + "\n" +
      fmt::format("# {:<29} {:>12} {:>16} {:>12}  {}\n", "function", "taken over", "bytes", "passed", "why");
  const std::size_t empty = text.size();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    std::uint64_t passed = 0;
    std::string why;
    for (std::size_t reason = 0; reason < reasons.size(); ++reason) {
      const std::uint64_t calls = row.passed[reason].load(std::memory_order_relaxed);
      passed += calls;
      if (calls > 0) why += fmt::format("{}{}: {}", why.empty() ? "" : ", ", reasons[reason], calls);
    }
    const std::uint64_t taken = row.taken.load(std::memory_order_relaxed);
    if (taken + passed == 0) continue;
    text += fmt::format("  {:<29} {:>12} {:>16} {:>12}  {}\n", functionNames[i], taken,
                        row.bytes.load(std::memory_order_relaxed), passed, why.empty() ? "-" : why);
  }
  if (text.size() == empty) text += "  none of them was called\n";
  const std::lock_guard lock(mutex_);
  if (!outcomes_.empty())
    text += fmt::format("# {:<29} {:>12} {:>16} {:>12}  {}\n", "compared", "bytes", "tacc us", "MPI us", "served by");
  for (const Outcome& outcome : outcomes_)
    text += fmt::format("  {:<29} {:>12} {:>16.2f} {:>12.2f}  {}\n",
                        functionNames[static_cast<std::size_t>(outcome.function)], outcome.bytes, 1e6 * outcome.tacc,
                        1e6 * outcome.mpi, outcome.isMpiFaster ? "MPI" : "tacc");
  return text;
}

}  // namespace tacc::mpi
