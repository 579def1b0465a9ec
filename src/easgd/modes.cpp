#include "easgd/modes.hpp"

#include <array>

#include "easgd/asynchronous.hpp"
#include "easgd/averaged.hpp"
#include "easgd/grouped.hpp"
#include "easgd/rooted.hpp"
#include "easgd/sharded.hpp"

namespace tacc {
namespace {

template <class Exchange>
std::unique_ptr<CenterExchange> makeExchange(const ExchangeParts& parts) {
  return std::make_unique<Exchange>(parts);
}

constexpr std::array<EasgdMode, taccEasgdNumModes> modes = {{
    // mode, name, synchronous, moves together, 16 bits, overlaps
    {taccEasgdOriginal, "original", true, false, false, false, makeExchange<RoundRobinExchange>},
    {taccEasgdAsync, "async", false, false, false, false, makeExchange<AsynchronousExchange>},
    {taccEasgdHogwild, "hogwild", false, false, false, false, makeExchange<AsynchronousExchange>},
    {taccEasgdSync1, "sync1", true, true, false, false, makeExchange<CenterTreeExchange>},
    {taccEasgdSync2, "sync2", true, true, true, false, makeExchange<AveragedExchange>},
    {taccEasgdSync3, "sync3", true, true, true, true, makeExchange<OverlappedExchange>},
    {taccEasgdDecentralized, "decentralized", true, true, false, false, makeExchange<ShardedExchange>},
    {taccEasgdDecentralizedStale, "decentralized-stale", true, true, false, true, makeExchange<StaleShardedExchange>},
    {taccEasgdHierarchical, "hierarchical", true, true, true, false, makeExchange<GroupedExchange>},
}};

}  // namespace

std::span<const EasgdMode> easgdModes() { return modes; }

const EasgdMode& easgdMode(taccEasgdMode_t mode) { return modes[static_cast<std::size_t>(mode)]; }

}  // namespace tacc
