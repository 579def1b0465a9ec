// The C functions that tell of a launcher and of a communicator.
#include <optional>
#include <string>
#include <string_view>

#include "api/boundary.hpp"
#include "api/check.hpp"
#include "api/handles.hpp"
#include "comm/hosts.hpp"
#include "comm/launch/launch_id.hpp"
#include "core/collective.hpp"
#include "core/error.hpp"
#include "topology/model/topology.hpp"

using tacc::Communicator;
using tacc::Entry;
using tacc::guard;
using tacc::guardCall;
using tacc::Needs;
using tacc::Observer;

namespace {

/// As much of it as there is room for. The array holds zeros.
template <std::size_t size>
void copyText(char (&to)[size], const std::string& text) {
  text.copy(to, size - 1);
}

/// A struct that the caller gives to be filled, with the size that its header had. `type`: its name.
template <class Info>
void checkInfo(const Info* info, const char* type) {
  tacc::checkPointer(info, "info");
  if (info->size < sizeof(Info))
    tacc::fail(taccInvalidArgument, "info->size is {}; set it to sizeof({}), {}", info->size, type, sizeof(Info));
}

}  // namespace

taccResult_t taccGetLaunch(const char** launcher, int* rank, int* nranks) {
  return guardCall("taccGetLaunch", nullptr, [&] {
    tacc::checkPointer(launcher, "launcher");
    const auto place = tacc::placeInJob();
    *launcher = place ? place->launcher.data() : nullptr;  // of the table, and so ended by a zero
    if (rank != nullptr) *rank = place ? place->rank : 0;
    if (nranks != nullptr) *nranks = place ? place->ranks : 1;
  });
}

taccResult_t taccCommCount(taccComm_t comm, int* count) {
  return guard("taccCommCount", comm, [&] {
    const Observer observer(comm);
    tacc::checkPointer(count, "count");
    *count = comm->communicator->ranks();
  });
}

taccResult_t taccCommGetNodeInfo(taccComm_t comm, taccNodeInfo_t* info) {
  return guard("taccCommGetNodeInfo", comm, [&] {
    const Observer observer(comm);
    checkInfo(info, "taccNodeInfo_t");
    const tacc::Standing s = comm->communicator->standing();
    *info = {info->size, s.host, s.hosts, s.localRank, s.localRanks, s.networkGroup, s.networkGroups, s.numaDomain};
  });
}

taccResult_t taccCommGetInfo(taccComm_t comm, taccCommInfo_t* info) {
  return guard("taccCommGetInfo", comm, [&] {
    const Observer observer(comm);
    checkInfo(info, "taccCommInfo_t");
    const Communicator& communicator = *comm->communicator;
    const tacc::Standing s = communicator.standing();
    const std::string transport = communicator.transportName();
    taccCommInfo_t found{};
    found.size = info->size;
    found.rank = communicator.rank();
    found.ranks = communicator.ranks();
    found.host = s.host;
    found.hosts = s.hosts;
    found.localRank = s.localRank;
    found.localRanks = s.localRanks;
    copyText(found.hostName, tacc::hostName());
    copyText(found.name, communicator.config().name);
    copyText(found.transport, transport.empty() ? "shm" : transport);
    if (const auto topology = communicator.topology()) found.topologyDigest = topology->digest();
    *info = found;
  });
}

taccResult_t taccCommUserRank(taccComm_t comm, int* rank) {
  return guard("taccCommUserRank", comm, [&] {
    const Observer observer(comm);
    tacc::checkPointer(rank, "rank");
    *rank = comm->communicator->rank();
  });
}

const char* taccExplain(taccComm_t comm, const char* collective, size_t bytes) {
  const char* text = nullptr;
  guard("taccExplain", comm, [&] {
    const Entry entry(comm, Needs::alive);
    tacc::checkPointer(collective, "collective");
    const std::string_view name = collective;
    std::optional<tacc::Collective> known = tacc::collectiveNamed(name);
    // With a count for each rank: the plans are the same.
    const bool isUnequal = !known && name.ends_with('v');
    if (isUnequal) known = tacc::collectiveNamed(name.substr(0, name.size() - 1));
    if (isUnequal && known && tacc::partitionOf(*known) != tacc::Partition::stack) known.reset();
    if (!known) known = tacc::requireCollective(name);
    comm->waitForStreams();
    comm->explanation = comm->communicator->explain(*known, bytes);
    text = comm->explanation.c_str();
  });
  return text;
}

const char* taccCommLastAlgorithm(taccComm_t comm) {
  const char* name = "";
  guard("taccCommLastAlgorithm", comm, [&] {
    const Entry entry(comm, Needs::alive);
    comm->waitForStreams();
    comm->lastAlgorithm = comm->communicator->lastAlgorithm();
    name = comm->lastAlgorithm.c_str();
  });
  return name;
}
