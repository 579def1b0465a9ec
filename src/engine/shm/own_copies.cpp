#include "engine/shm/own_copies.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tacc {
namespace {

bool isSlot(const Place& place) { return place.kind == Place::Kind::slot; }

class Deferral {
 public:
  Deferral(Program& program, const Plan& plan, int rank, const LoweringFacts& facts)
      : program_(program), plan_(plan), rank_(rank), facts_(facts) {}

  void run() {
    if (program_.rounds.size() < 2) return;
    std::vector<Operation>& early = program_.rounds[program_.rounds.size() - 2].operations;
    std::vector<Operation>& late = program_.rounds.back().operations;
    if (std::ranges::none_of(early, [](const Operation& o) { return std::ranges::any_of(o.destinations, isSlot); }) &&
        std::ranges::none_of(late, &Operation::isShared))
      return;
    std::vector<Operation> deferred;
    for (Operation& operation : early) {
      if (!isOwnCopy(operation) ||
          std::ranges::any_of(late, [&](const Operation& other) { return conflicts(operation, other); }))
        continue;
      Operation own = operation;
      std::erase_if(own.destinations, isSlot);
      deferred.push_back(std::move(own));
      std::erase_if(operation.destinations, [](const Place& place) { return !isSlot(place); });
    }
    std::erase_if(early, [](const Operation& o) { return o.destinations.empty(); });
    late.insert(late.begin(), deferred.begin(), deferred.end());
  }

 private:
  bool isOwnCopy(const Operation& o) const {
    if (o.sources.size() != 1 || o.sources.front().kind != Place::Kind::input) return false;
    const auto kept = std::ranges::count(o.destinations, Place::Kind::output, &Place::kind);
    const auto staged = std::ranges::count_if(o.destinations, isSlot);
    return kept > 0 && kept + staged == std::ssize(o.destinations) && (staged == 0 || facts_.readsTwice);
  }
  /// Whether two operations touch memory in common. Slots and scratch are not that of an own copy.
  bool conflicts(const Operation& one, const Operation& other) const {
    return std::ranges::any_of(blocksOf(one), [&](const Block& mine) {
      return std::ranges::any_of(blocksOf(other), [&](const Block& theirs) { return mine == theirs; });
    });
  }

  using Block = std::pair<Place::Kind, int>;
  /// All blocks of the user's buffers, also by the names that they have in place.
  std::vector<Block> blocksOf(const Operation& o) const {
    std::vector<Block> blocks;
    const bool isSplit = program_.partition == Partition::split;
    for (const std::vector<Place>* places : {&o.sources, &o.destinations})
      for (const Place& place : *places) {
        if (place.kind != Place::Kind::input && place.kind != Place::Kind::output) continue;
        for (int i = 0; i < o.blockCount; ++i) {
          const int block = (isSplit ? o.block : place.index) + i;
          blocks.emplace_back(place.kind, block);
          if (!facts_.inPlace || place.kind != Place::Kind::input) continue;
          const int same = isSplit ? block : inPlaceOutputOf(plan_, rank_, block);
          if (same >= 0) blocks.emplace_back(Place::Kind::output, same);
        }
      }
    return blocks;
  }

  Program& program_;
  const Plan& plan_;
  int rank_;
  LoweringFacts facts_;
};

}  // namespace

void deferOwnCopies(Program& program, const Plan& plan, int rank, const LoweringFacts& facts) {
  Deferral(program, plan, rank, facts).run();
}

}  // namespace tacc
