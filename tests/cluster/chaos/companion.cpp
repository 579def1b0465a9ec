#include "chaos/companion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>

namespace tacc::chaos {
namespace {

constexpr std::int32_t guard = 0x6b6b6b6b;

}  // namespace

Companion::Companion(const Round& round, Board& board, int self, std::vector<int> members, taccComm_t comm)
    : round_(round), board_(board), self_(self), members_(std::move(members)), comm_(comm) {
  std::ranges::reverse(members_);
  for (auto& data : data_) data.resize(most * members_.size() + 1);
  thread_ = std::thread([this] { run(); });
}

void Companion::end(bool isAgreed) {
  if (!thread_.joinable()) return;
  if (!isAgreed) {
    isRevoked_ = true;
    (void)taccCommRevoke(comm_);
  }
  mayEnd_ = true;
  thread_.join();
  (void)taccCommDestroy(comm_);
  const auto isGuard = [](std::int32_t value) { return value == guard; };
  if (hasFailed_ && !std::ranges::all_of(data_[1], isGuard))
    tellProblem(board_, round_.number, self_, "memory was changed after the part that it was lent to had failed");
}

void Companion::run() {
  for (std::uint32_t number = 0;; ++number) {
    const std::size_t count = number % 5 == 4 ? most : 1 + number % 100;
    std::fill_n(data_[0].data(), count * members_.size(), static_cast<std::int32_t>(number) + self_);
    if (number % 2 == 0) data_[0][count - 1] = mayEnd_ ? 0 : 1;
    const double start = now();
    if (call(number, count) == taccSuccess) {
      if (number % 2 == 0 && data_[1][count - 1] == 0) return;
      check(number, count);
      continue;
    }
    std::ranges::fill(data_[1], guard);
    hasFailed_ = true;
    try {
      tell(start);
    } catch (const std::bad_alloc&) {
      // A rank that may have no memory has nothing to say.
    }
    return;
  }
}

void Companion::tell(double start) {
  const std::string failure = taccGetLastError(comm_);
  const double seconds = now() - start;
  tellEvent(board_, fmt::format("rank {}, part: failed after {:.3f} s: {}", self_, seconds, failure));
  if (seconds > timeout + grace && !isSabotaged(board_, self_, start))
    tellProblem(board_, round_.number, self_, fmt::format("part: a call took {:.1f} s: {}", seconds, failure));
  // Others may have given the part up because the whole has failed.
  if (!isRevoked_ && failure.find("taccCommRevoke was called") == std::string::npos)
    judge(round_, board_, self_, members_, failure, start);
}

taccResult_t Companion::call(std::uint32_t number, std::size_t count) {
  const std::int32_t* send = data_[0].data();
  return number % 2 == 0 ? taccAllReduce(send, data_[1].data(), count, taccInt32, taccSum, comm_, nullptr)
                         : taccAllToAll(send, data_[1].data(), count, taccInt32, comm_, nullptr);
}

void Companion::check(std::uint32_t number, std::size_t count) {
  const auto ranks = static_cast<std::int32_t>(members_.size());
  std::int32_t sum = static_cast<std::int32_t>(number) * ranks;
  for (const int rank : members_) sum += rank;
  for (std::size_t i = 0; i + 1 < (number % 2 == 0 ? count : count * members_.size()); ++i) {
    const std::int32_t right = number % 2 == 0 ? sum : static_cast<std::int32_t>(number) + members_[i / count];
    if (data_[1][i] == right) continue;
    return tellProblem(board_, round_.number, self_,
                       fmt::format("part: element {} of call {} is {}, not {}", i, number, data_[1][i], right));
  }
}

}  // namespace tacc::chaos
