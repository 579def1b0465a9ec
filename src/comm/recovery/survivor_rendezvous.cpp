#include "comm/recovery/survivor_rendezvous.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {

SurvivorRendezvous::SurvivorRendezvous(int rank, const InetAddress* address) : door_(rank, address), interrupt_(rank) {
  members_.rank = rank;
}

SurvivorRendezvous::~SurvivorRendezvous() {
  if (memory_.isWanted) door_.keepOpen();
}

void SurvivorRendezvous::setPlaces(std::vector<SurvivorPlace> places, const Secret& secret, bool encrypts) {
  members_.places = std::move(places);
  members_.secret = secret;
  members_.encrypts = encrypts;
  memory_.dead.resize(members_.places.size());
}

Decision SurvivorRendezvous::agree(const AgreementRequest& request) {
  // One that joined with its last descriptors can still agree that it has. Ends after the agreement's connections,
  // which leave room for new spare ones.
  const SpareDescriptors spare;
  Agreement agreement(members_, door_, interrupt_, memory_, request, observer_);
  const auto end = [this] { return memory_.instance++; };
  Decision decision;
  try {
    decision = agreement.run();
  } catch (...) {
    end();
    throw;
  }
  memory_.decided.emplace(end(), AgreementMemory::Past{request.purpose, decision});
  if (!decision.members[static_cast<std::size_t>(members_.rank)]) {
    std::string names;
    for (std::size_t rank = 0; rank < decision.members.size(); ++rank)
      if (decision.members[rank]) names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
    fail(taccRemoteError, "rank {} came too late: the others have gone on without it (ranks {})", members_.rank, names);
  }
  return decision;
}

MemberWatch SurvivorRendezvous::watch(const std::vector<int>& members) const {
  if (members.front() != members_.rank) return {members_, {members.front()}};
  return {members_, {members.begin() + 1, members.end()}};
}

}  // namespace tacc
