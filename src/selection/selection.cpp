#include "selection/selection.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace tacc {
namespace {

const Algorithm* preferredFor(const PlanRequest& request) {
  const auto all = algorithms();
  const auto suits = [&](const Algorithm& a) { return a.suitsSharedMemory != nullptr && a.suitsSharedMemory(request); };
  const auto one = std::ranges::find_if(all, suits);
  return one == all.end() ? nullptr : &*one;
}

}  // namespace

std::size_t eagerLimit(const CallShape& shape, std::size_t eagerBytes) {
  if (!shape.forced.empty()) return 0;
  return eagerBytes;
}

std::size_t stagingChunk(const CallShape& shape) {
  constexpr std::size_t most = 512 * 1024;
  constexpr std::size_t least = 32 * 1024;
  constexpr std::size_t chunks = 8;
  const Collective c = shape.request.collective;
  // Only as chunks follow one another do the rank that stages and the ranks that read it work at the same time. Where
  // all ranks stage they are busy anyway, and ranks that take turns on a core would only take more of them.
  const bool oneWay = c == Collective::broadcast || c == Collective::scatter || c == Collective::reduce;
  if (!oneWay || shape.oversubscribed) return most;
  return std::clamp(shape.bytes / chunks, least, most);
}

std::size_t stagingAhead(const CallShape& shape) {
  constexpr std::size_t ahead = 320 * 1024;  // eight of the least chunks, and what rounding adds
  // Only a root can be in the next call before the others.
  const Collective c = shape.request.collective;
  return c == Collective::broadcast || c == Collective::scatter ? ahead : 0;
}

const Algorithm& selectAlgorithm(const CallShape& shape, const LoweringFacts&) {
  const Algorithm* algorithm = shape.forced.empty() ? preferredFor(shape.request) : findAlgorithm(shape.forced);
  if (algorithm != nullptr && algorithm->serves(shape.request)) return *algorithm;
  fail(taccInvalidUsage, "algorithm {} does not serve {} of {} ranks; these do: {}", shape.forced,
       nameOf(shape.request.collective), shape.request.ranks,
       namesOfThose([&](const Algorithm& a) { return a.serves(shape.request); }));
}

void checkAlgorithmName(std::string_view name, std::string_view where) {
  if (!name.empty() && findAlgorithm(name) == nullptr)
    fail(taccInvalidArgument, "{} names the algorithm '{}', which does not exist; there are {}", where, name,
         namesOfThose([](const Algorithm&) { return true; }));
}

}  // namespace tacc
