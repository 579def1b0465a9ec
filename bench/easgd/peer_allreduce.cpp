#include <fmt/format.h>

#include <stdexcept>

#include "coordinator/options.hpp"
#include "coordinator/session.hpp"
#include "coordinator/venue.hpp"
#include "easgd/easgd_bench.hpp"

namespace tacc::bench {

std::vector<PeerAllReduce> measurePeers(const EasgdOptions& options) {
  if (options.peers.empty()) return {};
  Options same;
  same.collective = findCollective("allreduce");
  same.sizes.first = same.sizes.last = options.bytes;
  same.repetitions = options.repetitions;
  same.types = {taccFloat32};
  same.ops = {taccSum};
  same.roots = {0};
  same.ranks = options.ranks;
  same.libraryMemory = !options.privateMemory;
  same.check = false;
  same.peers = options.peers;
  OwnVenue venue(same);
  const Row row = measureRows(same, venue).front();
  std::vector<PeerAllReduce> found;
  for (const PeerOutcome& peer : row.peers) {
    if (!peer.outcome)
      throw std::runtime_error(fmt::format("{} has no allreduce of {}", peer.name, tools::formatSize(options.bytes)));
    found.push_back({peer.name, peer.outcome->microseconds * 1e-3, row.outOfPlace.microseconds * 1e-3});
  }
  return found;
}

}  // namespace tacc::bench
