#include "launched/agent.hpp"

#include <fmt/format.h>

#include <exception>
#include <sstream>
#include <stdexcept>

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

std::string Agent::start(const std::string& name) {
  Launch launch = launchRank(name, options_, listener_.address(), options_.job->rank);
  teams_.push_back(std::make_unique<ProcessTeam>(std::move(launch), listener_));
  const Member& member = teams_.back()->members().front();
  return fmt::format("{} {} {}", member.processId, member.host, member.secret);
}

}  // namespace tacc::bench
