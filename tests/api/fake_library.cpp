// The functions below the C interface that make communicators, ids and memory, as fakes.
#include <cstdlib>
#include <cstring>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/hosts.hpp"
#include "comm/launch/launch_id.hpp"
#include "core/error.hpp"
#include "fake_communicator.hpp"
#include "topology/model/topology.hpp"
#include "transports/shm/library_memory.hpp"
#include "transports/shm/memory_fence.hpp"

namespace tacc {

namespace test {

FakeWorld& joinedWorld() {
  static FakeWorld world;
  return world;
}

}  // namespace test

std::uint64_t Topology::digest() const { return 0; }  // fakes have none

std::string hostName() { return "a.host.of.the.tests"; }

/// All ranks must be joining at once, as for a real one; an id that starts with 'x' is refused on rank 1.
std::unique_ptr<Communicator> Communicator::join(const taccUniqueId& id, int ranks, int rank, const CommConfig& config,
                                                 const std::stop_token& /*stop*/, const std::function<void()>&, bool) {
  if (id.internal[0] == 'x' && rank == 1) fail(taccRemoteError, "rank 1 is refused");
  auto joined = std::make_unique<test::FakeCommunicator>(test::joinedWorld(), rank, ranks, config);
  if (id.internal[0] != 'x') joined->run(Call{});
  return joined;
}

std::vector<std::unique_ptr<Communicator>> Communicator::makeThreads(int ranks, const CommConfig& config) {
  std::vector<std::unique_ptr<Communicator>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(std::make_unique<test::FakeCommunicator>(test::joinedWorld(), rank, ranks, config));
  }
  return all;
}

taccUniqueId makeUniqueId() {
  taccUniqueId id;
  std::memset(&id, 'u', sizeof(id));
  return id;
}

LaunchNumber::LaunchNumber() : value_(0) {}
void LaunchNumber::giveBack() noexcept {}

LaunchedRank findLaunch() {
  const char* launched = std::getenv("TACC_TEST_LAUNCHED");
  if (launched == nullptr) fail(taccInvalidUsage, "no launcher");
  return {makeUniqueId(), 1, 0};
}

std::optional<LaunchPlace> placeInJob() {
  if (std::getenv("TACC_TEST_LAUNCHED") == nullptr) return std::nullopt;
  return LaunchPlace{"a launcher", 2, 3};
}

void* allocateLibraryMemory(std::size_t bytes, Reserve) { return std::calloc(1, bytes); }
void unshareLibraryMemory(void*) {}
void freeLibraryMemory(void* pointer) { std::free(pointer); }

}  // namespace tacc
