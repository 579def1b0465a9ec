#include "trial.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <map>

#include "core/error.hpp"
#include "selection/cost/cost_model.hpp"
#include "selection/cost/message_graph.hpp"

namespace tacc::sim {
namespace {

double processorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// A child of this process and where its outcome comes from.
struct Child {
  std::size_t trial;
  int pipe;
};

Child start(const std::vector<Trial>& trials, std::size_t number, double mostWork, pid_t& pid) {
  int ends[2];
  if (::pipe(ends) != 0) failErrno("a pipe to a simulation cannot be made");
  std::fflush(nullptr);
  pid = ::fork();
  if (pid < 0) failErrno("a process for a simulation cannot be started");
  if (pid != 0) {
    ::close(ends[1]);
    return {number, ends[0]};
  }
  int status = 1;
  try {
    const Outcome outcome = perform(trials[number], mostWork);
    static_assert(sizeof outcome <= 4096, "a pipe takes it whole");
    status = ::write(ends[1], &outcome, sizeof outcome) == static_cast<ssize_t>(sizeof outcome) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  ::_exit(status);
}

}  // namespace

Outcome perform(const Trial& trial, double mostWork) {
  const double begin = processorSeconds();
  Machine& machine = *trial.machine;
  const PlanRequest request = machine.selector().request(trial.collective, 0);
  const Plan plan = makePlan(*trial.algorithm, request);
  const CostCall call = machine.cut(trial.collective, trial.bytes, plan.blocks);
  const Stage stage = machine.stage();
  Outcome outcome;
  outcome.chunks = chunksOf(call);
  outcome.rounds = plan.rounds;
  outcome.predicted = predict(*trial.algorithm, request, CostMap(machine.selector().machine()), call).value_or(0);
  const MessageGraph traffic(plan, call.bytes, 0, 0);
  for (const TrafficMessage& message : traffic.messages) {
    const int level = machine.topology().meet(stage.hosts[static_cast<std::size_t>(message.sender)],
                                              stage.hosts[static_cast<std::size_t>(message.receiver)]);
    outcome.bytesAt[std::min(level, Outcome::mostLevels - 1)] += message.bytes;
  }
  outcome.messages = static_cast<double>(traffic.messages.size()) * outcome.chunks;
  const double partners = static_cast<double>(traffic.pairs) / machine.ranks();
  if (outcome.messages * partners > mostWork) return outcome;
  outcome.seconds = replay(plan, stage, call);
  outcome.isReplayed = true;
  outcome.processorSeconds = processorSeconds() - begin;
  return outcome;
}

std::vector<Outcome> performAll(const std::vector<Trial>& trials, double mostWork, int jobs,
                                const std::function<void(std::size_t finished)>& done) {
  std::vector<Outcome> outcomes(trials.size());
  std::map<pid_t, Child> children;
  std::size_t next = 0, finished = 0;
  while (finished < trials.size()) {
    for (; next < trials.size() && static_cast<int>(children.size()) < jobs; ++next) {
      pid_t pid = 0;
      const Child child = start(trials, next, mostWork, pid);
      children.emplace(pid, child);
    }
    int status = 0;
    const pid_t pid = ::wait(&status);
    const auto child = children.find(pid);
    if (child == children.end()) failErrno("a simulation cannot be waited for");
    Outcome& outcome = outcomes[child->second.trial];
    const ssize_t got = ::read(child->second.pipe, &outcome, sizeof outcome);
    ::close(child->second.pipe);
    if (status != 0 || got != static_cast<ssize_t>(sizeof outcome)) {
      const Trial& trial = trials[child->second.trial];
      fail(taccInternalError, "the simulation of {} for {} of {:.0f} bytes on {} failed{}", trial.algorithm->name,
           nameOf(trial.collective), trial.bytes, trial.machine->topology().name(),
           WIFSIGNALED(status) ? fmt::format(" with signal {}", WTERMSIG(status)) : "");
    }
    children.erase(child);
    done(++finished);
  }
  return outcomes;
}

}  // namespace tacc::sim
