#include "launched/agent.hpp"

#include <fmt/format.h>

#include <exception>
#include <sstream>
#include <stdexcept>

#include "worker/messages.hpp"

namespace tacc::bench {

std::string Agent::obey(const std::string& order) {
  try {
    std::istringstream words(order);
    std::string verb, name, line;
    words >> verb;
    if (verb == startOrder && words >> name) return "ok " + start(name);
    size_t number = 0;
    int seconds = 0;
    if (verb != tellOrder || !(words >> number >> seconds) || !std::getline(words >> std::ws, line))
      throw std::invalid_argument(fmt::format("unexpected order \"{}\"", order));
    return "ok " + teams_.at(number)->command(line, std::chrono::seconds(seconds)).front();
  } catch (const std::exception& error) {
    return fmt::format("error {}", error.what());
  }
}

std::string Agent::shareByPeer(const std::string& peer, const std::string& word) {
  Team& team = *(early_[peer] = startRank(peer));
  return team.command(fmt::format("{} {}", shareCommand, word)).front();
}

std::unique_ptr<Team> Agent::startRank(const std::string& name) {
  Launch launch = launchRank(name, options_, listener_.address(), options_.job->rank);
  return std::make_unique<ProcessTeam>(std::move(launch), listener_);
}

std::string Agent::start(const std::string& name) {
  if (auto early = early_.extract(name))
    teams_.push_back(std::move(early.mapped()));
  else
    teams_.push_back(startRank(name));
  const Member& member = teams_.back()->members().front();
  return fmt::format("{} {} {}", member.processId, member.host, member.secret);
}

}  // namespace tacc::bench
