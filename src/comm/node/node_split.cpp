// Communicators that are parts of one of a node. Processes need no meeting for it: what they would tell each other goes
// through the parent's segment, and they share the part as node_part.cpp says. So a part takes no descriptor, and
// memory for what it uses.
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/node/node_communicator.hpp"
#include "comm/settings.hpp"
#include "core/default_arithmetic.hpp"
#include "core/error.hpp"
#include "topology/model/cores.hpp"
#include "topology/model/digest.hpp"

namespace tacc {
namespace {

/// The process's environment, unless it is not right: who joins by the usual way says so to all.
std::optional<Environment> environmentIfRight() {
  try {
    return checkEnvironment();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The same where algorithms are named that do not exist.
std::optional<CommConfig> configIfRight(const CommConfig& part, const Environment& environment) {
  try {
    return applyEnvironment(part, environment);
  } catch (const Error&) {
    return std::nullopt;
  }
}

CommConfig configOfPart(const CommConfig& config) {
  CommConfig part = config;
  part.isPart = true;
  part.transport.reset();
  part.lent.reset();
  return part;
}

/// Whether what a communicator takes over from another one is what it would find by itself.
bool isAlike(const Environment& a, const Environment& b) {
  return a.agreed == b.agreed && a.segments == b.segments && a.topologyFiles == b.topologyFiles;
}

}  // namespace

/// What every rank tells the others first.
struct NodeCommunicator::PartWish {
  SplitWish wish;
  bool isAlike;            // this rank's environment is as it was when this communicator was made
  std::uint64_t settings;  // digest of what must be equal in a part
  cpu_set_t cores;
  Key secret;  // of the part that this rank leads
};

NodeCommunicator::PartWish NodeCommunicator::wishFor(int color, int key, const std::optional<Environment>& environment,
                                                     const CommConfig& part) const {
  PartWish mine{{color, key, rank()}, false, 0, allowedCores(), makeNonce()};
  if (!environment) return mine;
  const std::optional<CommConfig> config = configIfRight(part, *environment);
  if (!config) return mine;
  mine.isAlike = isAlike(*environment, environment_);
  Digest settings;
  settings.add(settingsOf(*environment, *config));
  mine.settings = settings.value();
  return mine;
}

bool NodeCommunicator::canShare(const std::vector<PartWish>& wishes) const {
  for (const PartWish& one : wishes) {
    if (!one.isAlike) return false;
    if (one.wish.color < 0) continue;
    std::vector<cpu_set_t> cores;
    for (const PartWish& other : wishes) {
      if (other.wish.color != one.wish.color) continue;
      if (other.settings != one.settings) return false;  // who meets the others says what differs
      cores.push_back(other.cores);
    }
    if (mayStandApart(cores) && !membership_.isInsideKnown) return false;
  }
  return true;
}

std::unique_ptr<Communicator> NodeCommunicator::split(int color, int key, const CommConfig& config) {
  const DefaultArithmetic arithmetic;
  const CommConfig part = configOfPart(config);
  const std::optional<Environment> environment = environmentIfRight();
  const std::vector<PartWish> wishes = gatherValues(wishFor(color, key, environment, part));
  std::vector<SplitWish> groupWishes;
  for (const PartWish& one : wishes) groupWishes.push_back(one.wish);
  const Group group = groupIn(std::move(groupWishes));
  if (membership_.access.sameProcess) return splitThreads(group, color, part);
  if (!canShare(wishes)) {
    const auto ids = gatherValues(color >= 0 && group.rank == 0 ? makeHostUniqueId() : taccUniqueId{});
    if (color < 0) return nullptr;
    return joinPart(ids[static_cast<std::size_t>(group.leader)], group.ranks, group.rank, part,
                    [this] { checkErrors(); });
  }
  Making making;
  try {
    if (color >= 0) {
      PartTerms terms{group, {}, wishes[static_cast<std::size_t>(group.leader)].secret};
      for (const int member : group.members) terms.cores.push_back(wishes[static_cast<std::size_t>(member)].cores);
      makePart(terms, *environment, part, making);
      endMaking(making);
    }
  } catch (...) {
    reportFailure();
  }
  // Either all have their parts now, or this communicator has failed.
  runNow({.collective = Collective::barrier, .isInternal = true});
  if (making.problem) throw Error(*making.problem);
  return std::move(making.made);
}

/// The same among some of the ranks: what the others would be asked, and what they would be told, goes as messages.
std::unique_ptr<Communicator> NodeCommunicator::makeGroup(std::span<const int> members, const CommConfig& config) {
  const DefaultArithmetic arithmetic;
  const CommConfig part = configOfPart(config);
  const Group group = groupOf(members);
  const std::optional<Environment> environment = environmentIfRight();
  const MakesPart says(*this, describeMaking(group));
  Making making;
  try {
    const std::vector<PartWish> wishes = gatherAmong(group, wishFor(0, group.rank, environment, part));
    if (membership_.access.sameProcess) return makeThreadGroup(group, part);
    if (canShare(wishes)) {
      PartTerms terms{group, {}, wishes.front().secret};
      for (const PartWish& one : wishes) terms.cores.push_back(one.cores);
      makePart(terms, *environment, part, making);
      // Nobody leaves before all have their parts, or know that this communicator has failed.
      making.made->runNow({.collective = Collective::barrier, .isInternal = true});
      endMaking(making);
    }
  } catch (...) {
    reportFailure();
  }
  if (making.problem) throw Error(*making.problem);
  if (making.made) return std::move(making.made);
  const taccUniqueId id = gatherAmong(group, group.rank == 0 ? makeHostUniqueId() : taccUniqueId{}).front();
  return joinPart(id, group.ranks, group.rank, part, [this] { checkErrors(); });
}

/// Of ranks that are threads: whoever hears of it takes its own, and the last one frees it, so that it outlives a
/// leader that fails meanwhile. Lost where a rank fails before it hears of it.
struct NodeCommunicator::Handout {
  std::vector<std::unique_ptr<Communicator>> made;
  std::atomic<int> left;  // that have not taken theirs

  std::unique_ptr<Communicator> take(int rank) {
    std::unique_ptr<Communicator> own = std::move(made[static_cast<std::size_t>(rank)]);
    if (left.fetch_sub(1) == 1) delete this;
    return own;
  }
};

NodeCommunicator::Handout* NodeCommunicator::handOut(int ranks, const CommConfig& part) {
  return new Handout{makeThreads(ranks, part), ranks};
}

std::unique_ptr<Communicator> NodeCommunicator::splitThreads(const Group& group, int color, const CommConfig& part) {
  Handout* own = nullptr;
  try {
    if (color >= 0 && group.leader == rank()) own = handOut(group.ranks, part);
  } catch (...) {
    reportFailure();  // the others wait for this rank's answer
  }
  const auto handouts = gatherValues(own);
  std::unique_ptr<Communicator> mine;
  if (color >= 0) mine = handouts[static_cast<std::size_t>(group.leader)]->take(group.rank);
  return mine;
}

std::unique_ptr<Communicator> NodeCommunicator::makeThreadGroup(const Group& group, const CommConfig& part) {
  return gatherAmong(group, group.rank == 0 ? handOut(group.ranks, part) : nullptr).front()->take(group.rank);
}

}  // namespace tacc
