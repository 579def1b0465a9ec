#include "launched/job_session.hpp"

#include <stdexcept>

#include "coordinator/session.hpp"
#include "launched/agent.hpp"
#include "launched/control.hpp"
#include "launched/job_venue.hpp"
#include "tacc/tacc.h"

namespace tacc::bench {
namespace {

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
