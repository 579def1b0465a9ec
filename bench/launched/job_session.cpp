#include "launched/job_session.hpp"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

#include "coordinator/session.hpp"
#include "coordinator/venue.hpp"
#include "launched/agent.hpp"
#include "launched/control.hpp"
#include "tacc/tacc.h"

namespace tacc::bench {
namespace {

/// Rank 0's side of a job whose launcher has started all ranks.
class JobVenue final : public Venue {
 public:
  /// Both outlive it. From now on the others are at its disposal.
  JobVenue(Control& control, Agent& agent) : control_(control), agent_(agent) {}

  std::unique_ptr<Team> start(const std::string& name) override;
  int ranksHere() const override { return control_.ranksHere(); }

  /// Lets all agents do this, and waits for their answers, by rank and without the "ok". Throws std::runtime_error with
  /// that of the first that could not.
  std::vector<std::string> order(const std::string& order);

 private:
  Control& control_;
  Agent& agent_;
  size_t started_ = 0;
};

/// A contestant of which each process of the job has one rank.
class JobTeam final : public Team {
 public:
  JobTeam(JobVenue& venue, std::string name, size_t number) : venue_(venue), name_(std::move(name)), number_(number) {
    for (const std::string& answer : venue.order(fmt::format("{} {}", startOrder, name_))) {
      std::istringstream words(answer);
      Member member;
      words >> member.processId >> member.host >> member.secret;
      members_.push_back(member);
    }
  }

  const std::string& name() const override { return name_; }
  const std::vector<Member>& members() const override { return members_; }
  std::vector<std::string> command(const std::string& line, std::chrono::seconds patience) override {
    return venue_.order(fmt::format("{} {} {} {}", tellOrder, number_, patience.count(), line));
  }

 private:
  JobVenue& venue_;
  std::string name_;
  size_t number_;
  std::vector<Member> members_;
};

std::unique_ptr<Team> JobVenue::start(const std::string& name) {
  return std::make_unique<JobTeam>(*this, name, started_++);
}

std::vector<std::string> JobVenue::order(const std::string& order) {
  control_.broadcast(order);
  std::vector<std::string> answers = control_.gather(agent_.obey(order));
  for (std::string& answer : answers) {
    const size_t space = answer.find(' ');
    if (answer.substr(0, space) != "ok") throw std::runtime_error(answer.substr(space + 1));
    answer = answer.substr(space + 1);
  }
  return answers;
}

int lead(const Options& options, Agent& agent, Control& control) {
  JobVenue venue(control, agent);
  try {
    const int status = runSession(options, venue) ? 0 : 1;
    control.broadcast(endOrder);
    return status;
  } catch (...) {
    // An error of the control itself has reached the others already.
    try {
      control.broadcast(endOrder);
    } catch (const std::exception&) {
    }
    throw;
  }
}

int follow(Agent& agent, Control& control) {
  for (;;) {
    const std::string order = control.broadcast("");
    if (order == endOrder) return 0;
    control.gather(agent.obey(order));
  }
}

}  // namespace

std::optional<Job> findJob() {
  const char* launcher = nullptr;
  Job job;
  if (taccGetLaunch(&launcher, &job.rank, &job.ranks) != taccSuccess)
    throw std::runtime_error(taccGetLastError(nullptr));
  // One process alone starts ranks as it does without a launcher.
  if (launcher == nullptr || job.ranks == 1) return std::nullopt;
  job.launcher = launcher;
  return job;
}

int runJobSession(const Options& options) {
  Agent agent(options);
  Control control(options, agent);
  return options.job->rank == 0 ? lead(options, agent, control) : follow(agent, control);
}

}  // namespace tacc::bench
