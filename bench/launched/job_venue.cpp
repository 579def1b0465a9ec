#include "launched/job_venue.hpp"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

namespace tacc::bench {
namespace {

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

}  // namespace

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

}  // namespace tacc::bench
