#include "comm/joined_communicator.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "comm/settings.hpp"
#include "comm/unique_id.hpp"

namespace tacc {

JoinedCommunicator::Group JoinedCommunicator::gatherGroup(int color, int key) {
  struct Wish {
    int color, key, rank;
  };
  std::vector<Wish> group = gatherValues(Wish{color, key, rank()});
  std::erase_if(group, [color](const Wish& wish) { return wish.color != color; });
  std::ranges::stable_sort(group, {}, &Wish::key);
  const auto place = std::ranges::find(group, rank(), &Wish::rank) - group.begin();
  return {static_cast<int>(place), static_cast<int>(group.size()), group.front().rank};
}

std::string JoinedCommunicator::describeTuned(const TunedSize& measured) const {
  std::string text = fmt::format("-> {:22} {:>11.1f} us  tuning file {}: the fastest of those measured with {} bytes",
                                 measured.algorithm, measured.seconds * 1e6, tuning_->origin, measured.bytes);
  if (!measured.next.empty()) text += fmt::format("; {} took {:.1f} us", measured.next, measured.nextSeconds * 1e6);
  return text + "\n";
}

std::unique_ptr<Communicator> JoinedCommunicator::shrink(std::span<const int> excluded, const CommConfig& config) {
  std::vector<bool> isExcluded(static_cast<std::size_t>(ranks()));
  for (const int other : excluded) {
    if (other < 0 || other >= ranks() || other == rank())
      fail(taccInvalidArgument, "rank {} cannot be excluded: it must be another one of the {} ranks (this is rank {})",
           other, ranks(), rank());
    isExcluded[static_cast<std::size_t>(other)] = true;
  }
  if (!muster_ && ranks() > 1)
    fail(taccInvalidUsage,
         "ranks that are threads of one process end together; taccCommSplit makes smaller communicators of them");
  const double seconds = applyEnvironment(config, checkEnvironment()).initTimeout;
  const Muster::Outcome outcome = muster_ ? muster_->gather(isExcluded, seconds) : Muster::Outcome{makeUniqueId(), {0}};
  const auto place = std::ranges::find(outcome.survivors, rank()) - outcome.survivors.begin();
  CommConfig rest = config;
  rest.isPart = true;
  return join(outcome.id, static_cast<int>(outcome.survivors.size()), static_cast<int>(place), rest);
}

}  // namespace tacc
