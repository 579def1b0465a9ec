// How the ranks of a part of a node's communicator come to share it, once they know who they are: the part gets a
// segment of its own, handed round once, and claims and processes are those of the communicator that it is a part of.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "comm/cluster/tuning_agreement.hpp"
#include "comm/node/node_communicator.hpp"
#include "comm/node/node_survey.hpp"
#include "comm/settings.hpp"
#include "core/error.hpp"
#include "topology/model/cores.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

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

void NodeCommunicator::makePart(const PartTerms& terms, const Environment& environment, const CommConfig& part,
                                Making& making) {
  const Group& group = terms.group;
  shareWithPart(terms, environment, making.share);
  making.presence = making.share.presence;
  making.made = std::make_unique<NodeCommunicator>(std::move(making.share), group.rank, group.ranks,
                                                   applyEnvironment(part, environment), environment);
  if (making.presence)
    making.made->setRendezvous(std::make_unique<SurvivorRendezvous>(group.rank, group.ranks, terms.secret,
                                                                    environment.encryption, making.presence));
  making.made->setIdleWork([this] { waiter_.lookAround(); });
  making.says.emplace(*making.made, describeMaking(group));
  making.problem = making.made->adoptTuning(environment);
}

void NodeCommunicator::endMaking(Making& making) {
  making.says.reset();
  making.made->setIdleWork({});
  making.made->waiter_.setNames({});
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

}  // namespace tacc
