// The C functions that make and end communicators, and those by which the ranks that are left go on. What is asked of
// one is in c_queries.cpp, what belongs to one in c_resources.cpp.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/boundary.hpp"
#include "api/check.hpp"
#include "api/config.hpp"
#include "api/group.hpp"
#include "api/handles.hpp"
#include "api/joining.hpp"
#include "api/roomy_stack.hpp"
#include "comm/launch/launch_id.hpp"
#include "core/error.hpp"

using tacc::Communicator;
using tacc::Entry;
using tacc::guardCall;
using tacc::guardLong;
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
    std::unique_ptr<Communicator> made;
    tacc::runWithRoom([&] { made = Communicator::join(arguments.id, arguments.ranks, arguments.rank, config, stop); });
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

/// The ranks of a list that a communicator can be made of by `comm`.
std::vector<int> checkMembers(const taccComm& comm, const int* ranks, int count) {
  tacc::checkPointer(ranks, "ranks");
  if (count < 1) tacc::fail(taccInvalidArgument, "nranks is {}; it must be at least 1", count);
  const int all = comm.communicator->ranks();
  if (count > all) tacc::fail(taccInvalidArgument, "nranks is {}, and comm has {} ranks", count, all);
  std::vector<int> members(ranks, ranks + count);
  std::vector<bool> isThere(static_cast<std::size_t>(all));
  for (int i = 0; i < count; ++i) {
    const int rank = ranks[i];
    if (rank < 0 || rank >= all)
      tacc::fail(taccInvalidArgument, "ranks[{}] is {}; it must be in [0, {}), the ranks of comm", i, rank, all);
    if (isThere[static_cast<std::size_t>(rank)])
      tacc::fail(taccInvalidArgument, "ranks[{}] is {}, which is in the list before", i, rank);
    isThere[static_cast<std::size_t>(rank)] = true;
  }
  if (!isThere[static_cast<std::size_t>(comm.rank.load())])
    tacc::fail(taccInvalidArgument, "the list has no rank {}, which calls: only ranks that are in it do",
               comm.rank.load());
  return members;
}

/// Makes a part of `comm` by `divide(communicator)`, or has the group that is open do so.
template <class Divide>
void makePart(const char* function, taccComm_t comm, taccComm_t* newcomm, Divide divide) {
  auto make = [comm, divide = std::move(divide)] {
    std::unique_ptr<Communicator> part;
    tacc::runWithRoom([&] {
      const tacc::InsideFor call(*comm);
      part = divide(*comm->communicator);
    });
    return part;
  };
  if (tacc::groupIsOpen()) {
    tacc::recordCreation(comm, function,
                         std::make_unique<tacc::Creation>(tacc::Creation{newcomm, std::move(make), nullptr}));
    return;
  }
  comm->waitForStreams();
  auto made = make();
  *newcomm = made ? tacc::makeHandle(std::move(made)) : nullptr;
}

tacc::CommConfig configOfPart(const taccComm& comm, const taccConfig_t* config) {
  return config != nullptr ? tacc::checkConfig(config) : comm.communicator->config();
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

taccResult_t taccCommInitAll(taccComm_t* comms, int ndev, const int* /*devlist*/) {
  return guardLong("taccCommInitAll", nullptr, [&] {
    tacc::checkPointer(comms, "comms");
    if (ndev < 1) tacc::fail(taccInvalidArgument, "ndev is {}; it must be at least 1", ndev);
    std::vector<std::unique_ptr<Communicator>> made;
    tacc::runWithRoom([&] { made = Communicator::makeThreads(ndev, tacc::CommConfig()); });
    const auto handles = tacc::makeHandles(std::move(made));
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
    makePart("taccCommSplit", comm, newcomm, [color, key, config = configOfPart(*comm, config)](Communicator& whole) {
      return whole.split(color, key, config);
    });
  });
}

taccResult_t taccCommCreateGroup(taccComm_t comm, const int* ranks, int nranks, taccComm_t* newcomm,
                                 const taccConfig_t* config) {
  return guardCall("taccCommCreateGroup", comm, [&] {
    const Entry entry(comm);
    tacc::checkPointer(newcomm, "newcomm");
    makePart("taccCommCreateGroup", comm, newcomm,
             [members = checkMembers(*comm, ranks, nranks), config = configOfPart(*comm, config)](Communicator& whole) {
               return whole.makeGroup(members, config);
             });
  });
}

taccResult_t taccCommFinalize(taccComm_t comm) {
  return guardLong("taccCommFinalize", comm, [&] {
    const Entry entry(comm);
    end(*comm, Life::finalized);
  });
}

taccResult_t taccCommDestroy(taccComm_t comm) {
  return guardLong("taccCommDestroy", comm, [&] {
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
  return guardLong("taccCommAbort", comm, [&] {
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
    tacc::freeAborted(*comm);
  });
}

taccResult_t taccCommRevoke(taccComm_t comm) {
  return guardLong("taccCommRevoke", comm, [&] {
    const Observer observer(comm);
    comm->communicator->abort(fmt::format("taccCommRevoke was called on rank {}", comm->rank.load()));
  });
}

taccResult_t taccCommShrink(taccComm_t comm, const int* excludeRanksList, int excludeRanksCount, taccComm_t* newcomm,
                            const taccConfig_t* config, int shrinkFlags) {
  return guardLong("taccCommShrink", comm, [&] {
    const Entry entry(comm);
    tacc::checkNotInGroup(*comm);
    tacc::checkPointer(newcomm, "newcomm");
    if (excludeRanksCount < 0)
      tacc::fail(taccInvalidArgument, "excludeRanksCount is {}; it must be 0 or more", excludeRanksCount);
    if (excludeRanksCount > 0) tacc::checkPointer(excludeRanksList, "excludeRanksList");
    if (shrinkFlags != 0)
      tacc::fail(taccInvalidArgument, "shrinkFlags is {}; no flag is known, it must be 0", shrinkFlags);
    const tacc::CommConfig checked = configOfPart(*comm, config);
    const std::span excluded(excludeRanksList, static_cast<std::size_t>(excludeRanksCount));
    std::unique_ptr<Communicator> made;
    tacc::runWithRoom([&] {
      const tacc::InsideFor call(*comm);
      made = comm->communicator->shrink(excluded, checked);
    });
    *newcomm = tacc::makeHandle(std::move(made));
  });
}

taccResult_t taccCommAgree(taccComm_t comm, int* flags) {
  return guardLong("taccCommAgree", comm, [&] {
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
  return guardLong("taccCommGetAsyncError", comm, [&] {
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
