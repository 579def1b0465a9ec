#include "comm/joined_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/exceptions.hpp"

namespace tacc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto causeTime = std::chrono::milliseconds(500);

}  // namespace

JoinedCommunicator::Group JoinedCommunicator::gatherGroup(int color, int key) {
  struct Wish {
    int color, key, rank;
  };
  std::vector<Wish> group = gatherValues(Wish{color, key, rank()});
  std::erase_if(group, [color](const Wish& wish) { return wish.color != color; });
  std::ranges::stable_sort(group, {}, &Wish::key);
  const auto place = std::ranges::find(group, rank(), &Wish::rank) - group.begin();
  std::vector<int> members;
  for (const Wish& wish : group) members.push_back(wish.rank);
  return {static_cast<int>(place), static_cast<int>(group.size()), group.front().rank, std::move(members)};
}

std::unique_ptr<Communicator> JoinedCommunicator::joinPart(const taccUniqueId& id, int ranks, int newRank,
                                                           const CommConfig& config,
                                                           const std::function<void()>& watch) {
  try {
    return join(id, ranks, newRank, config, {}, watch, true);
  } catch (...) {
    const Error error = errorOf(std::current_exception(), rank(), [] { return std::string("taccCommSplit"); });
    if (isOwnTrouble(error)) failWith(error);
    // Whoever fails so tells its own parent: there is the cause, of which the end of a connection is the consequence.
    if (error.result() == taccRemoteError)
      for (const auto begin = Clock::now(); Clock::now() - begin < causeTime;) {
        watch();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    throw Error(error);
  }
}

std::string JoinedCommunicator::describeTuned(const TunedSize& measured) const {
  std::string text = fmt::format("-> {:22} {:>11.1f} us  tuning file {}: the fastest of those measured with {} bytes",
                                 measured.algorithm, measured.seconds * 1e6, tuning_->origin, measured.bytes);
  if (!measured.next.empty()) text += fmt::format("; {} took {:.1f} us", measured.next, measured.nextSeconds * 1e6);
  return text + "\n";
}

}  // namespace tacc
