#include "comm/recovery/survivor_rendezvous.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "transports/keyed_hash.hpp"
#include "transports/shm/presence.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {

namespace {

std::string placeName(const Secret& secret, int rank) {
  constexpr std::size_t shownBytes = 16;
  const Proof hash = keyedHash(secret, "tacc: survivors ", {bytesOf(rank)});
  std::string name = "tacc-m-";
  for (std::size_t i = 0; i < shownBytes; ++i) name += fmt::format("{:02x}", hash[i]);
  return name;
}

std::string_view nameAt(const SurvivorPlace& place) {
  return {place.name.begin(), std::ranges::find(place.name, '\0')};
}

}  // namespace

SurvivorRendezvous::SurvivorRendezvous(int rank, const InetAddress* address)
    : door_(std::in_place, rank, address), interrupt_(rank) {
  members_.rank = rank;
}

SurvivorRendezvous::SurvivorRendezvous(int rank, int ranks, const Secret& secret, bool encrypts,
                                       std::shared_ptr<const Presence> presence)
    : interrupt_(rank) {
  members_.rank = rank;
  std::vector<SurvivorPlace> places(static_cast<std::size_t>(ranks));
  for (int peer = 0; peer < ranks; ++peer)
    std::ranges::copy(placeName(secret, peer), places[static_cast<std::size_t>(peer)].name.begin());
  setPlaces(std::move(places), secret, encrypts);
  members_.presence = std::move(presence);
}

SurvivorRendezvous::~SurvivorRendezvous() {
  if (memory_.isWanted && door_) door_->keepOpen();
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
  if (!door_)
    door_.emplace(members_.rank, std::string(nameAt(members_.places[static_cast<std::size_t>(members_.rank)])));
  Agreement agreement(members_, *door_, interrupt_, memory_, request, observer_);
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
