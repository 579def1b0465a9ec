#include "comm/membership.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "comm/node/node_survey.hpp"
#include "compute/reduce/reduce.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"
#include "core/log.hpp"
#include "topology/model/cores.hpp"
#include "topology/model/inside.hpp"
#include "transports/shm/cma.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

/// What every rank tells the others before the segment exists.
struct NodeMember {
  int process;
  NodeGeometry geometry;
  cpu_set_t cores;
  std::size_t cacheBytes;
  const std::uint64_t* probe;  // address of `probeValue` in that process
  std::uint64_t probeValue;
};
static_assert(std::is_trivially_copyable_v<NodeMember>);

NodeMember introduce(const NodeGeometry& geometry, const std::uint64_t& probe) {
  NodeMember mine{};
  mine.process = static_cast<int>(::getpid());
  mine.geometry = geometry;
  mine.cores = allowedCores();
  mine.cacheBytes = ownCacheBytes();
  mine.probe = &probe;
  mine.probeValue = probe;
  return mine;
}

void checkAgreement(const std::vector<NodeMember>& all) {
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].geometry != all[0].geometry)
      fail(taccInvalidUsage,
           "rank {} would share {} bytes and rank 0 {}; TACC_CHUNK_SIZE must be the same on all ranks", rank,
           NodeSegment::bytesFor(all[rank].geometry), NodeSegment::bytesFor(all[0].geometry));
  }
}

std::vector<cpu_set_t> setsOf(const std::vector<NodeMember>& all) {
  std::vector<cpu_set_t> sets;
  for (const NodeMember& one : all) sets.push_back(one.cores);
  return sets;
}

/// The cores that all of them may use together.
int coresOf(const std::vector<NodeMember>& all) { return countCores(setsOf(all)); }

/// All know where all are, from one description of the host: that of rank 0.
void agreeOnPlaces(Membership& member, Bootstrap& bootstrap, const std::vector<cpu_set_t>& sets, int rank,
                   const Environment& environment) {
  member.places = placesUnknown(static_cast<int>(sets.size()));
  if (!mayStandApart(sets)) return;
  std::string text;
  if (rank == 0) text = describeInside(environment.topologyFiles);
  const std::vector<std::byte> agreed = bootstrap.broadcast(std::as_bytes(std::span(text)));
  member.isInsideKnown = true;
  if (agreed.empty()) return;
  const std::string_view told(reinterpret_cast<const char*>(agreed.data()), agreed.size());
  member.inside = std::make_shared<const NodeDescription>(insideFromText(told));
  member.places = placesOf(*member.inside, sets);
}

/// Commits the pages that `rank` owns, so that memory that runs out is an Error here and no SIGBUS later. Each rank
/// does so for its own, from where they are used, so that they lie on its NUMA node.
void reserveArea(const SharedMemory& memory, const NodeGeometry& geometry, int rank) {
  const std::size_t begin = NodeSegment::areaOffset(geometry, rank);
  const std::size_t end = NodeSegment::areaOffset(geometry, rank + 1);
  reservePages(memory.fd(), memory.data() + begin, begin, end - begin, segmentPurpose);
}

/// "memfd" or "file", for messages.
std::string_view kindOf(const SharedMemory& memory) {
  std::array<char, 64> target{};
  const std::string link = fmt::format("/proc/self/fd/{}", memory.fd());
  if (::readlink(link.c_str(), target.data(), target.size() - 1) <= 0) return "unknown memory";
  return std::string_view(target.data()).starts_with("/memfd:") ? "memfd" : "file";
}

void logMembership(const Membership& member, int rank, std::string_view memoryKind, int cores) {
  if (!logs(LogLevel::info)) return;
  const NodeGeometry& geometry = member.segment.geometry();
  log(LogLevel::info, rank, "joined {} ranks of this host; {} KiB shared ({}), {}; kernels for {}; {} cores, {}",
      geometry.ranks, NodeSegment::bytesFor(geometry) / 1024, memoryKind,
      member.access.sameProcess   ? "all in one process"
      : member.access.kernelReads ? "private memory is readable through the kernel (CMA)"
                                  : "private memory is not readable through the kernel (CMA)",
      reduceIsa(), cores, member.policy.oversubscribed ? "oversubscribed" : "not oversubscribed");
}

/// What follows the rendezvous: agreement, the shared segment, and what works between the ranks.
void shareNode(Membership& member, Bootstrap& bootstrap, int ranks, int rank, const Environment& environment,
               bool isPart) {
  (void)reduceIsa();  // a TACC_ISA that does not fit this CPU is an Error now
  const NodeGeometry geometry = chooseGeometry(ranks, environment, isPart);
  const auto probe = std::make_unique<std::uint64_t>(0x7acc'7acc'0000'0000ULL + static_cast<std::uint64_t>(::getpid()));
  const auto all = bootstrap.gatherValues(introduce(geometry, *probe));
  checkAgreement(all);

  const std::size_t bytes = NodeSegment::bytesFor(geometry);
  auto memory = std::make_shared<SharedMemory>();
  if (rank == 0) {
    *memory = SharedMemory::create(bytes, segmentPurpose, Reserve::onTouch);
    // Before anybody has it, as whoever finds no room for its own pages posts that in the header.
    reservePages(memory->fd(), memory->data(), 0, NodeSegment::areaOffset(geometry, 0), segmentPurpose);
  }
  FileDescriptor descriptor = bootstrap.broadcastDescriptor(rank == 0 ? memory->fd() : -1);
  if (rank == 0)
    descriptor.reset();
  else
    *memory = SharedMemory::map(std::move(descriptor), bytes, segmentPurpose);
  memory->keepFromChildren();
  member.segment = NodeSegment(memory->data(), geometry);
  member.memory = memory;
  // Between hosts calls go as messages, and most of the area is never used.
  if (isPart)
    member.pages = AreaPages(member.segment, rank, memory->fd());
  else
    reserveArea(*memory, geometry, rank);
  const std::string_view kind = kindOf(*memory);
  // The claim takes the only descriptor that is left of the segment: communicators come in hundreds.
  FileDescriptor last = memory->releaseFd();
  if (ranks > 1) {
    std::vector<int> claims(static_cast<std::size_t>(ranks));
    std::iota(claims.begin(), claims.end(), 0);
    member.presence = std::make_shared<Presence>(
        member.segment, memory, rank, std::make_shared<const Liveness>(std::move(last), rank), std::move(claims));
  }

  for (const NodeMember& one : all) member.processes.push_back(one.process);
  member.policy = chooseWaitPolicy(ranks, coresOf(all), environment.spin);
  agreeOnPlaces(member, bootstrap, setsOf(all), rank, environment);
  member.cacheBytes = all[0].cacheBytes;

  const auto next = static_cast<std::size_t>((rank + 1) % ranks);
  const bool works = environment.cma != CmaMode::off && ranks > 1 &&
                     probeCma(all[next].process, all[next].probe, all[next].probeValue);
  // This exchange is also the barrier after which everybody's claim stands and the probed values may go.
  const auto probes = bootstrap.gatherValues(static_cast<char>(works));
  member.access.kernelReads = ranks > 1 && std::ranges::all_of(probes, [](char ok) { return ok != 0; });
  const bool isWanted = environment.cma == CmaMode::on || environment.cma == CmaMode::pipes;
  if (isWanted && ranks > 1 && !member.access.kernelReads)
    fail(taccSystemError,
         "TACC_CMA=on or pipes, but process_vm_readv does not work between the ranks (rank {}: {}); a container "
         "needs CAP_SYS_PTRACE or kernel.yama.ptrace_scope=0",
         rank, works ? "works here" : "refused here");
  if (!member.places.isFlat() && !member.policy.oversubscribed) member.pages.need(AreaPart::arena);
  member.figures = measureNode(bootstrap, member.segment, member.places, rank, member.policy.oversubscribed);
  logMembership(member, rank, kind, coresOf(all));
}

}  // namespace

NodeGeometry chooseGeometry(int ranks, const Environment& environment, bool isPart) {
  constexpr std::size_t kilo = 1024;
  NodeGeometry geometry;
  geometry.ranks = ranks;
  geometry.eagerBytes = 32 * kilo;
  geometry.arenaBytes = environment.chunkSize ? roundUp(*environment.chunkSize * 4, pageBytes)
                                              : (ranks <= 16 ? 2048 * kilo : 1024 * kilo);
  geometry.pairBytes = 256 * kilo;
  geometry.hasMessages = isPart;
  return geometry;
}

Membership joinNode(Bootstrap& bootstrap, int ranks, int rank, const Environment& environment, bool isPart) {
  Membership member;
  try {
    member.handRound = std::make_unique<HandRound>(bootstrap.deriveKey("tacc: hand round"), ranks, rank);
    shareNode(member, bootstrap, ranks, rank, environment, isPart);
  } catch (...) {
    const Error error = errorOf(std::current_exception(), rank, [] { return std::string("joining"); });
    // The others wait in their next exchange, and get this text there; or they have joined already, when rank 0 hears
    // of an abort at the very end.
    if (member.segment.isMapped()) member.segment.errorBoard().post(rank, error.result(), error.what());
    bootstrap.announceFailure(error);
    throw Error(error);
  }
  return member;
}

std::vector<Membership> makeThreadNode(int ranks, const Environment& environment) {
  const NodeGeometry geometry = chooseGeometry(ranks, environment);
  const std::size_t bytes = roundUp(NodeSegment::bytesFor(geometry), pageBytes);
  // Zeros that take no memory before they are used.
  void* raw = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) fail(taccSystemError, "no memory for the {} bytes that {} ranks share", bytes, ranks);
  const std::shared_ptr<void> memory(raw, [bytes](void* pages) { ::munmap(pages, bytes); });
  const std::uint64_t unused = 0;
  const std::vector<NodeMember> all(1, introduce(geometry, unused));
  std::vector<Membership> members(static_cast<std::size_t>(ranks));
  for (Membership& member : members) {
    member.segment = NodeSegment(static_cast<std::byte*>(raw), geometry);
    member.memory = memory;
    member.processes.assign(static_cast<std::size_t>(ranks), all[0].process);
    member.access.sameProcess = true;
    member.places = placesUnknown(ranks);
    member.figures = assumedFigures(member.places);
    member.cacheBytes = all[0].cacheBytes;
    member.policy = chooseWaitPolicy(ranks, coresOf(all), environment.spin);
    logMembership(member, static_cast<int>(&member - members.data()), "private", coresOf(all));
  }
  return members;
}

}  // namespace tacc
