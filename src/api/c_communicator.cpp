// The C functions that make, ask and end communicators, and what belongs to one: registrations and operators.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "api/boundary.hpp"
#include "api/check.hpp"
#include "api/config.hpp"
#include "api/group.hpp"
#include "api/handles.hpp"
#include "api/joining.hpp"
#include "comm/host.hpp"
#include "comm/launch/launch_id.hpp"
#include "core/error.hpp"
#include "topology/model/topology.hpp"

using tacc::Communicator;
using tacc::Entry;
using tacc::guard;
using tacc::guardCall;
using tacc::Life;
using tacc::Needs;
using tacc::Observer;

namespace {

/// What a rank joins arguments.
struct JoinArguments {
  int ranks;
  taccUniqueId id;
  int rank;
  std::shared_ptr<tacc::LaunchNumber> number = nullptr;  // null: the id is the program's own
};

/// Joins, and says of the number that it is taken, or free again, before anybody hears how it ended.
std::unique_ptr<Communicator> joinBy(const JoinArguments& arguments, const tacc::CommConfig& config,
                                     const std::stop_token& stop = {}) {
  try {
    auto made = Communicator::join(arguments.id, arguments.ranks, arguments.rank, config, stop);
    if (arguments.number) arguments.number->keep();
    return made;
  } catch (const tacc::Error& error) {
    if (!arguments.number) throw;
    arguments.number->giveBack();
    if (error.result() != taccTimeout) throw;
    tacc::fail(taccTimeout,
               "{} (by taccCommInitEnv, after this rank had made {} others so: every rank must have made as many)",
               error.what(), arguments.number->value());
  }
}

/// Lets a thread join.
void beginJoin(const char* function, taccComm_t* comm, const JoinArguments& arguments, const tacc::CommConfig& config) {
  if (tacc::groupIsOpen())
    tacc::fail(taccInvalidUsage, "a communicator with blocking = 0 cannot be made inside a group; end the group first");
  taccComm_t const handle = tacc::makeJoiningHandle(arguments.rank, arguments.ranks);
  handle->joining = std::make_unique<tacc::Joining>(
      *handle, function, [=](const std::stop_token& stop) { return joinBy(arguments, config, stop); });
  *comm = handle;
}

taccResult_t join(const char* function, taccComm_t* comm, const JoinArguments& arguments,
                  const taccConfig_t* config) noexcept {
  bool goesOn = false;
  const taccResult_t result = guardCall(function, nullptr, [&] {
    tacc::checkPointer(comm, "comm");
    if (arguments.ranks < 1) tacc::fail(taccInvalidArgument, "nranks is {}; it must be at least 1", arguments.ranks);
    if (arguments.rank < 0 || arguments.rank >= arguments.ranks) {
      tacc::fail(taccInvalidArgument, "rank {} is not in [0, nranks), nranks being {}", arguments.rank,
                 arguments.ranks);
    }
    const tacc::CommConfig checked = tacc::checkConfig(config);
    if (!checked.isBlocking) {
      beginJoin(function, comm, arguments, checked);
      goesOn = true;
      return;
    }
    auto make = [arguments, checked] { return joinBy(arguments, checked); };
    if (tacc::groupIsOpen()) {
      tacc::recordCreation(nullptr, function,
                           std::make_unique<tacc::Creation>(tacc::Creation{comm, std::move(make), nullptr}));
    } else {
      *comm = tacc::makeHandle(make());
    }
  });
  return goesOn ? taccInProgress : result;
}

/// As much of it as there is room for. The array holds zeros.
template <std::size_t size>
void copyText(char (&to)[size], const std::string& text) {
  text.copy(to, size - 1);
}

/// Waits for the communicator's work and moves it to `next`, unless another thread aborts it first.
void end(taccComm& comm, Life next) {
  tacc::checkNotInGroup(comm);
  comm.waitForStreams();
  Life life = comm.life.load();
  while (has(life, Needs::alive)) {
    if (comm.life.compare_exchange_weak(life, next)) return;
  }
  tacc::fail(taccRemoteError, "the communicator was aborted by another thread meanwhile");
}

}  // namespace

taccResult_t taccCommInitRank(taccComm_t* comm, int nranks, taccUniqueId commId, int rank) {
  return join("taccCommInitRank", comm, {nranks, commId, rank}, nullptr);
}

taccResult_t taccCommInitRankConfig(taccComm_t* comm, int nranks, taccUniqueId commId, int rank,
                                    const taccConfig_t* config) {
  return join("taccCommInitRankConfig", comm, {nranks, commId, rank}, config);
}

taccResult_t taccCommInitEnv(taccComm_t* comm, const taccConfig_t* config) {
  constexpr const char* function = "taccCommInitEnv";
  tacc::LaunchedRank launched{};
  const taccResult_t result = guardCall(function, nullptr, [&] {
    tacc::checkPointer(comm, "comm");
    (void)tacc::checkConfig(config);
    launched = tacc::findLaunch();
  });
  if (result != taccSuccess) return result;
  return join(function, comm, {launched.ranks, launched.id, launched.rank, std::move(launched.number)}, config);
}

taccResult_t taccGetLaunch(const char** launcher, int* rank, int* nranks) {
  return guardCall("taccGetLaunch", nullptr, [&] {
    tacc::checkPointer(launcher, "launcher");
    const auto place = tacc::placeInJob();
    *launcher = place ? place->launcher.data() : nullptr;  // of the table, and so ended by a zero
    if (rank != nullptr) *rank = place ? place->rank : 0;
    if (nranks != nullptr) *nranks = place ? place->ranks : 1;
  });
}

taccResult_t taccCommInitAll(taccComm_t* comms, int ndev, const int* /*devlist*/) {
  return guard("taccCommInitAll", nullptr, [&] {
    tacc::checkPointer(comms, "comms");
    if (ndev < 1) tacc::fail(taccInvalidArgument, "ndev is {}; it must be at least 1", ndev);
    const auto handles = tacc::makeHandles(Communicator::makeThreads(ndev, tacc::CommConfig()));
    std::copy(handles.begin(), handles.end(), comms);
  });
}

taccResult_t taccCommSplit(taccComm_t comm, int color, int key, taccComm_t* newcomm, const taccConfig_t* config) {
  return guardCall("taccCommSplit", comm, [&] {
    const Entry entry(comm);
    tacc::checkPointer(newcomm, "newcomm");
    if (color < TACC_SPLIT_NOCOLOR) {
      tacc::fail(taccInvalidArgument, "color is {}; it must be at least 0, or TACC_SPLIT_NOCOLOR", color);
    }
    tacc::CommConfig checked = config != nullptr ? tacc::checkConfig(config) : comm->communicator->config();
    auto make = [comm, color, key, checked = std::move(checked)] {
      return comm->communicator->split(color, key, checked);
    };
    if (tacc::groupIsOpen()) {
      tacc::recordCreation(comm, "taccCommSplit",
                           std::make_unique<tacc::Creation>(tacc::Creation{newcomm, std::move(make), nullptr}));
      return;
    }
    comm->waitForStreams();
    auto made = make();
    *newcomm = made ? tacc::makeHandle(std::move(made)) : nullptr;
  });
}

taccResult_t taccCommFinalize(taccComm_t comm) {
  return guard("taccCommFinalize", comm, [&] {
    const Entry entry(comm);
    end(*comm, Life::finalized);
  });
}

taccResult_t taccCommDestroy(taccComm_t comm) {
  return guard("taccCommDestroy", comm, [&] {
    if (Life life = Life::notJoined;
        tacc::isHandle(comm) && comm->life.compare_exchange_strong(life, Life::destroyed)) {
      tacc::freeHandle(*comm, false);
      return;
    }
    Entry entry(comm, Needs::alive);
    end(*comm, Life::destroyed);
    entry.forget();
    tacc::freeHandle(*comm, true);
  });
}

taccResult_t taccCommAbort(taccComm_t comm) {
  return guard("taccCommAbort", comm, [&] {
    if (!tacc::isHandle(comm)) tacc::failOnHandle(comm);
    const std::string why = fmt::format("taccCommAbort was called on rank {}", comm->rank.load());
    Life life = comm->life.load();
    do {
      if (!has(life, Needs::alive) && life != Life::joining && life != Life::notJoined) tacc::failOnHandle(comm);
    } while (!comm->life.compare_exchange_weak(life, Life::aborted));
    if (!has(life, Needs::alive)) {
      tacc::freeHandle(*comm, false);
      return;
    }
    comm->communicator->abort(why);
    comm->communicator->endRecovery();
    comm->sequencer.close();
    tacc::freeHandle(*comm, false);
  });
}

taccResult_t taccCommRevoke(taccComm_t comm) {
  return guard("taccCommRevoke", comm, [&] {
    const Observer observer(comm);
    comm->communicator->abort(fmt::format("taccCommRevoke was called on rank {}", comm->rank.load()));
  });
}

taccResult_t taccCommShrink(taccComm_t comm, const int* excludeRanksList, int excludeRanksCount, taccComm_t* newcomm,
                            const taccConfig_t* config, int shrinkFlags) {
  return guard("taccCommShrink", comm, [&] {
    const Entry entry(comm);
    tacc::checkNotInGroup(*comm);
    tacc::checkPointer(newcomm, "newcomm");
    if (excludeRanksCount < 0)
      tacc::fail(taccInvalidArgument, "excludeRanksCount is {}; it must be 0 or more", excludeRanksCount);
    if (excludeRanksCount > 0) tacc::checkPointer(excludeRanksList, "excludeRanksList");
    if (shrinkFlags != 0)
      tacc::fail(taccInvalidArgument, "shrinkFlags is {}; no flag is known, it must be 0", shrinkFlags);
    const tacc::CommConfig checked = config != nullptr ? tacc::checkConfig(config) : comm->communicator->config();
    const std::span excluded(excludeRanksList, static_cast<std::size_t>(excludeRanksCount));
    *newcomm = tacc::makeHandle(comm->communicator->shrink(excluded, checked));
  });
}

taccResult_t taccCommAgree(taccComm_t comm, int* flags) {
  return guard("taccCommAgree", comm, [&] {
    const Entry entry(comm);
    tacc::checkNotInGroup(*comm);
    tacc::checkPointer(flags, "flags");
    comm->waitForStreams();
    const Communicator::Agreed agreed = comm->communicator->agree(static_cast<std::uint32_t>(*flags));
    *flags = static_cast<int>(agreed.flags);
    if (agreed.lost.empty()) return;
    std::string names;
    for (const int rank : agreed.lost) names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
    tacc::fail(taccRemoteError, "agreed on flags {:#x} without rank{} {}", agreed.flags,
               agreed.lost.size() == 1 ? "" : "s", names);
  });
}

taccResult_t taccCommGetAsyncError(taccComm_t comm, taccResult_t* asyncError) {
  return guard("taccCommGetAsyncError", comm, [&] {
    tacc::checkPointer(asyncError, "asyncError");
    const Life life = tacc::isHandle(comm) ? comm->life.load() : Life::active;
    if (life == Life::joining || life == Life::notJoined) {
      *asyncError = life == Life::joining ? taccInProgress : comm->joining->result();
      return;
    }
    const Observer observer(comm);
    *asyncError = comm->communicator->asyncError();
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
    tacc::checkPointer(info, "info");
    if (info->size < sizeof(taccNodeInfo_t))
      tacc::fail(taccInvalidArgument, "info->size is {}; set it to sizeof(taccNodeInfo_t), {}", info->size,
                 sizeof(taccNodeInfo_t));
    const tacc::Standing s = comm->communicator->standing();
    *info = {info->size, s.host, s.hosts, s.localRank, s.localRanks, s.networkGroup, s.networkGroups, s.numaDomain};
  });
}

taccResult_t taccCommGetInfo(taccComm_t comm, taccCommInfo_t* info) {
  return guard("taccCommGetInfo", comm, [&] {
    const Observer observer(comm);
    tacc::checkPointer(info, "info");
    if (info->size < sizeof(taccCommInfo_t))
      tacc::fail(taccInvalidArgument, "info->size is {}; set it to sizeof(taccCommInfo_t), {}", info->size,
                 sizeof(taccCommInfo_t));
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

taccResult_t taccCommRegister(taccComm_t comm, void* buffer, size_t bytes, void** handle) {
  return guard("taccCommRegister", comm, [&] {
    const Entry entry(comm);
    tacc::checkPointer(buffer, "buffer");
    tacc::checkPointer(handle, "handle");
    if (bytes == 0) tacc::fail(taccInvalidArgument, "bytes is 0; a registered buffer has at least one byte");
    comm->waitForStreams();
    auto registration = std::make_unique<tacc::Registration>(tacc::Registration{buffer});
    comm->registrations.reserve(comm->registrations.size() + 1);
    comm->communicator->registerBuffer(buffer, bytes);
    *handle = registration.get();
    comm->registrations.push_back(std::move(registration));
  });
}

taccResult_t taccCommDeregister(taccComm_t comm, void* handle) {
  return guard("taccCommDeregister", comm, [&] {
    const Entry entry(comm);
    auto& all = comm->registrations;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& registration) { return registration.get() == handle; });
    if (found == all.end()) {
      tacc::fail(taccInvalidArgument, "handle {} is not one that taccCommRegister gave for this communicator", handle);
    }
    comm->waitForStreams();
    const std::unique_ptr<tacc::Registration> gone = std::move(*found);
    all.erase(found);
    const bool last =
        std::none_of(all.begin(), all.end(), [&](const auto& other) { return other->buffer == gone->buffer; });
    if (last) comm->communicator->deregisterBuffer(gone->buffer);
  });
}

taccResult_t taccRedOpCreatePreMulSum(taccRedOp_t* op, void* scalar, taccDataType_t datatype,
                                      taccScalarResidence_t residence, taccComm_t comm) {
  return guard("taccRedOpCreatePreMulSum", comm, [&] {
    const Entry entry(comm);
    tacc::checkPointer(op, "op");
    tacc::checkPointer(scalar, "scalar");
    tacc::checkType(datatype);
    if (residence != taccScalarDevice && residence != taccScalarHostImmediate) {
      tacc::fail(taccInvalidArgument, "residence {} is unknown; valid are 0 (device) and 1 (host immediate)",
                 static_cast<int>(residence));
    }
    if (!tacc::hasOperation(datatype, taccMax))
      tacc::fail(taccInvalidArgument, "datatype {} cannot be multiplied by a factor; real numbers can",
                 tacc::nameOf(datatype));
    *op = comm->operators.create(scalar, datatype);
  });
}

taccResult_t taccRedOpCreateUser(taccRedOp_t* op, taccReductionFunction function, void* context, int commutative,
                                 taccComm_t comm) {
  return guard("taccRedOpCreateUser", comm, [&] {
    const Entry entry(comm);
    tacc::checkPointer(op, "op");
    if (function == nullptr) tacc::fail(taccInvalidArgument, "function is NULL");
    *op = comm->operators.create(tacc::UserReduction{function, context, commutative != 0});
  });
}

taccResult_t taccRedOpDestroy(taccRedOp_t op, taccComm_t comm) {
  return guard("taccRedOpDestroy", comm, [&] {
    const Entry entry(comm);
    comm->operators.destroy(op);
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
    if (!known) {
      std::string names;
      for (int c = 0; c < tacc::collectiveCount; ++c)
        names += (c == 0 ? "" : ", ") + std::string(tacc::nameOf(static_cast<tacc::Collective>(c)));
      tacc::fail(taccInvalidArgument, "there is no collective \"{}\"; there are {}", collective, names);
    }
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
