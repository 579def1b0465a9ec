// Communicators that are split off one of a node. Processes need no meeting for it: what they would tell each other
// goes through the parent's segment, the part gets a segment of its own, handed round once, and claims and processes
// are the parent's. So a part takes no descriptor, and memory for what it uses.
#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <utility>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/cluster/tuning_agreement.hpp"
#include "comm/node/node_communicator.hpp"
#include "comm/node/node_survey.hpp"
#include "comm/settings.hpp"
#include "core/default_arithmetic.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"
#include "topology/model/cores.hpp"
#include "topology/model/digest.hpp"
#include "transports/shm/shared_memory.hpp"

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

/// Whether what a communicator takes over from another one is what it would find by itself.
bool isAlike(const Environment& a, const Environment& b) {
  return a.agreed == b.agreed && a.segments == b.segments && a.topologyFiles == b.topologyFiles;
}

/// What rank 0 knows of a tuning file, as text: what it has found first, then the path, a zero, and the file.
enum class Found : char { nothing = '0', unnamed = '1', named = '2', unreadable = '3' };

std::string tuningText(const Environment& environment) {
  try {
    const std::optional<TuningText> found = lookForTuning(environment, Surroundings::here());
    if (!found) return {static_cast<char>(Found::nothing)};
    std::string text(1, static_cast<char>(found->isNamed ? Found::named : Found::unnamed));
    return text.append(found->path).append(1, '\0').append(found->text);
  } catch (const Error& error) {
    return std::string(1, static_cast<char>(Found::unreadable)).append(error.what());
  }
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
  CommConfig part = config;
  part.isPart = true;
  part.transport.reset();
  part.lent.reset();
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
  // Outlive a failure until it is told: a rank that left its part before would be missed there without a reason.
  Membership share;
  std::shared_ptr<Presence> presence;
  std::unique_ptr<NodeCommunicator> made;
  std::optional<Error> problem;
  try {
    if (color >= 0) {
      PartTerms terms{group, {}, wishes[static_cast<std::size_t>(group.leader)].secret};
      for (const int member : group.members) terms.cores.push_back(wishes[static_cast<std::size_t>(member)].cores);
      shareWithPart(terms, *environment, share);
      presence = share.presence;
      made = std::make_unique<NodeCommunicator>(std::move(share), group.rank, group.ranks,
                                                applyEnvironment(part, *environment), *environment);
      if (presence)
        made->setRendezvous(std::make_unique<SurvivorRendezvous>(group.rank, group.ranks, terms.secret,
                                                                 environment->encryption, presence));
      // A part that waits for a rank looks after this communicator, where that one's trouble is told.
      made->setIdleWork([this] { checkErrors(); });
      problem = made->adoptTuning(*environment);
      made->setIdleWork({});
      made->waiter_.setNames({});
    }
  } catch (...) {
    reportFailure();
  }
  // Either all have their parts now, or this communicator has failed.
  runNow({.collective = Collective::barrier, .isInternal = true});
  if (problem) throw Error(*problem);
  return made;
}

void NodeCommunicator::shareWithPart(const PartTerms& terms, const Environment& environment, Membership& part) {
  const auto& [newRank, ranks, leader, members] = terms.group;
  const NodeGeometry geometry = chooseGeometry(ranks, environment);
  const std::size_t bytes = NodeSegment::bytesFor(geometry);
  part.handRound = std::make_unique<HandRound>(keyedHash(terms.secret, "tacc: hand round", {}), ranks, newRank);
  auto memory = std::make_shared<SharedMemory>();
  std::vector<OfferedMemory> offered;
  if (newRank == 0) {
    *memory = SharedMemory::create(bytes, segmentPurpose, Reserve::onTouch);
    offered.push_back({1, memory->fd(), bytes});
  }
  std::vector<bool> givers(static_cast<std::size_t>(ranks));
  givers[0] = true;
  const auto start = std::chrono::steady_clock::now();
  const auto look = [&, &of = members](int missing, const std::function<bool()>& hasCome) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    waiter_.lookAt(of[static_cast<std::size_t>(missing)], waited.count(), hasCome);
  };
  for (ReceivedMemory& received : part.handRound->run(offered, givers, look))
    *memory = SharedMemory::map(std::move(received.fd), bytes, segmentPurpose);
  memory->keepFromChildren();
  part.segment = NodeSegment(memory->data(), geometry);
  part.memory = memory;
  part.pages = AreaPages(part.segment, newRank, memory->fd());
  memory->closeFd();

  std::vector<int> claims;
  for (const int member : members) {
    part.processes.push_back(membership_.processes[static_cast<std::size_t>(member)]);
    if (ranks > 1) claims.push_back(membership_.presence->claimOf(member));
  }
  if (ranks > 1)
    part.presence =
        std::make_shared<Presence>(part.segment, memory, newRank, membership_.presence->claims(), std::move(claims));
  part.access.kernelReads = ranks > 1 && membership_.access.kernelReads;
  part.policy = chooseWaitPolicy(ranks, countCores(terms.cores), environment.spin);
  part.isInsideKnown = membership_.isInsideKnown;
  part.inside = membership_.inside;
  part.places = part.inside && mayStandApart(terms.cores) ? placesOf(*part.inside, terms.cores) : placesUnknown(ranks);
  part.figures = figuresOfPart(membership_.places, membership_.figures, part.places, members);
  part.cacheBytes = membership_.cacheBytes;
  for (const int member : members) part.names.names.push_back(waiter_.nameOf(member));  // until all have it
}

std::string NodeCommunicator::hearRankZero(const std::string& text) {
  const std::size_t bytes = gatherValues(text.size()).front();
  std::string heard = rank() == 0 ? text : std::string(bytes, '\0');
  runNow({.collective = Collective::broadcast,
          .send = heard.data(),
          .receive = heard.data(),
          .count = bytes,
          .type = taccUint8,
          .isInternal = true});
  return heard;
}

std::optional<Error> NodeCommunicator::adoptTuning(const Environment& environment) {
  const std::string told = hearRankZero(rank() == 0 ? tuningText(environment) : std::string());
  const TuningUse use = tuningUseOfNode(ranks(), true);
  std::shared_ptr<const Tuning> tuning;
  const auto found = static_cast<Found>(told.front());
  if (found == Found::unreadable) return Error(taccInvalidArgument, told.substr(1));
  try {
    if (const std::size_t end = told.find('\0'); found != Found::nothing && end != std::string::npos)
      tuning = judgeTuning({told.substr(1, end - 1), told.substr(end + 1), found == Found::named}, use, rank());
  } catch (const Error& error) {
    return error;
  }
  setTuning(use.here, std::move(tuning));
  return std::nullopt;
}

/// The leader of each group makes all its members; each takes its own before the leader goes on.
std::unique_ptr<Communicator> NodeCommunicator::splitThreads(const Group& group, int color, const CommConfig& part) {
  std::vector<std::unique_ptr<Communicator>> made;
  try {
    if (color >= 0 && group.leader == rank()) made = makeThreads(group.ranks, part);
  } catch (...) {
    reportFailure();  // the others wait for this rank's answer
  }
  const auto places = gatherValues(&made);
  std::unique_ptr<Communicator> mine;
  if (color >= 0)
    mine = std::move((*places[static_cast<std::size_t>(group.leader)])[static_cast<std::size_t>(group.rank)]);
  runNow({.collective = Collective::barrier, .isInternal = true});
  return mine;
}

}  // namespace tacc
