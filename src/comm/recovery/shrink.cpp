// Going on without ranks that were lost, and agreeing after a failure.
#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/control/member_watch.hpp"
#include "comm/joined_communicator.hpp"
#include "comm/settings.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

/// For ranks to agree on whether they have joined, also where joining took all the time there was.
constexpr double leastSeconds = 2;

std::vector<int> ranksIn(const std::vector<bool>& members) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < members.size(); ++rank)
    if (members[rank]) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

std::vector<bool> allBut(std::vector<bool> members) {
  members.flip();
  return members;
}

}  // namespace

/// In turns of three: the ranks agree on who goes on, those join a new communicator, and they agree on whether all have
/// joined. So either all have a communicator of the same members, or none has. Another death on the way makes another
/// turn.
std::unique_ptr<Communicator> JoinedCommunicator::shrink(std::span<const int> excluded, const CommConfig& config) {
  std::vector<bool> isExcluded(static_cast<std::size_t>(ranks()));
  for (const int other : excluded) {
    if (other < 0 || other >= ranks() || other == rank())
      fail(taccInvalidArgument, "rank {} cannot be excluded: it must be another one of the {} ranks (this is rank {})",
           other, ranks(), rank());
    isExcluded[static_cast<std::size_t>(other)] = true;
  }
  if (!rendezvous_ && ranks() > 1)
    fail(taccInvalidUsage,
         "ranks that are threads of one process end together; taccCommSplit makes smaller communicators of them");
  CommConfig rest = config;
  rest.isPart = true;
  if (!rendezvous_) return join(makeUniqueId(), 1, 0, rest, recoveryStop_.get_token());
  const Deadline end(applyEnvironment(config, checkEnvironment()).initTimeout);
  std::optional<Error> earlier;  // why this rank could not join in an earlier turn
  for (;;) {
    Decision who;
    try {
      who = rendezvous_->agree({AgreementPurpose::shrink, ~0U, isExcluded, end.seconds()});
    } catch (const Error& error) {
      if (earlier) fail(error.result(), "{}; before that: {}", error.what(), earlier->what());
      throw;
    }
    const std::vector<int> members = ranksIn(who.members);
    const auto place = std::ranges::find(members, rank()) - members.begin();
    std::unique_ptr<Communicator> made;
    std::optional<Error> problem;
    try {
      MemberWatch watch = rendezvous_->watch(members);
      made = join(who.id, static_cast<int>(members.size()), static_cast<int>(place), rest, recoveryStop_.get_token(),
                  [&watch] { watch.look(); });
    } catch (const Error& error) {
      problem = error;
    } catch (const std::exception& error) {
      problem.emplace(taccSystemError, fmt::format("rank {}: {}", rank(), error.what()));
    }
    Decision joined;
    try {
      joined = rendezvous_->agree(
          {AgreementPurpose::joined, made ? 1U : 0U, allBut(who.members), std::max(end.seconds(), leastSeconds)});
    } catch (const Error& e) {
      if (problem) throw Error(*problem);  // most often the cause
      throw;
    }
    if (joined.flags != 0) return made;
    if (joined.members != who.members && !end.passed()) {
      if (problem) earlier = std::move(problem);
      continue;
    }
    if (problem) throw Error(*problem);
    fail(taccRemoteError, "another of the {} ranks that are left could not join the new communicator, so none has one",
         members.size());
  }
}

Communicator::Agreed JoinedCommunicator::agree(std::uint32_t flags) {
  if (ranks() == 1) return {flags, {}};
  if (!rendezvous_) {
    if (asyncError() != taccSuccess)
      fail(taccInvalidUsage, "the communicator has failed, and ranks that are threads of one process end together");
    Agreed agreed{~0U, {}};
    for (const std::uint32_t one : gatherValues(flags)) agreed.flags &= one;
    return agreed;
  }
  const double seconds = applyEnvironment(config(), checkEnvironment()).initTimeout;
  const Decision decision = rendezvous_->agree(
      {AgreementPurpose::flags, flags, std::vector<bool>(static_cast<std::size_t>(ranks())), seconds});
  return {decision.flags, ranksIn(allBut(decision.members))};
}

void JoinedCommunicator::endRecovery() noexcept {
  if (rendezvous_) rendezvous_->interrupt();
  (void)recoveryStop_.request_stop();
}

}  // namespace tacc
