#include "coordinator/team.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "support/interrupt.hpp"
#include "worker/messages.hpp"

namespace tacc::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int pollMilliseconds = 200;
constexpr size_t shownLogBytes = 2000;
constexpr std::chrono::seconds startPatience{60};
/// How long a team may take to end by itself.
constexpr std::chrono::seconds farewell{3};

/// Waits a little for any of `waiting` to become readable.
void waitForAny(std::vector<pollfd>& waiting) {
  const int ready = ::poll(waiting.data(), waiting.size(), pollMilliseconds);
  tools::throwIfInterrupted();
  if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
}

}  // namespace

Listener::Listener(bool acrossHosts) : descriptor_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  address_ = fmt::format("tacc_bench.{}.{:08x}", ::getpid(), std::random_device()());
  if (acrossHosts) address_ = directory_.emplace().path() + "/coordinator";
  const SocketName name(address_);
  if (descriptor_ < 0 || ::bind(descriptor_, name.get(), name.length) != 0 || ::listen(descriptor_, SOMAXCONN) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot listen for the ranks");
}

Listener::~Listener() { ::close(descriptor_); }

Channel Listener::accept() {
  Channel channel(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC));
  if (channel.descriptor() < 0) throw std::system_error(errno, std::generic_category(), "accept");
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(channel.descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != ::getuid())
    throw std::runtime_error("a process of another user tried to join the measurement");
  return channel;
}

void Team::join() {
  std::string secret = "-";
  for (const Member& member : members())
    if (!member.secret.empty()) secret = member.secret;
  command(fmt::format("{} {}", joinCommand, secret), startPatience);
}

ProcessTeam::ProcessTeam(Launch launch, Listener& listener) : launch_(std::move(launch)), log_("tacc_bench_log") {
  const auto ranks = static_cast<size_t>(launch_.ranks);
  members_.resize(ranks);
  for (size_t r = 0; r < ranks; ++r) channels_.emplace_back(-1);
  try {
    start(listener);
  } catch (...) {
    // The destructor does not run for an object that was not made; the processes end with the members.
    channels_.clear();
    throw;
  }
}

ProcessTeam::~ProcessTeam() {
  if (processes_.empty()) return;
  // Ranks end when their channels close, and launchers when their ranks end. The rest is for what hangs.
  channels_.clear();
  const auto deadline = Clock::now() + (std::uncaught_exceptions() > 0 ? farewell / 3 : farewell);
  for (tools::Process& process : processes_) process.finish(deadline);
}

void ProcessTeam::start(Listener& listener) {
  for (const auto& command : launch_.commands) processes_.emplace_back(command, log_);
  std::vector<Channel> unnamed;
  const auto deadline = Clock::now() + startPatience;
  while (std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.processId == 0; })) {
    std::vector<pollfd> waiting = {{listener.descriptor(), POLLIN, 0}};
    for (const Channel& channel : unnamed) waiting.push_back({channel.descriptor(), POLLIN, 0});
    waitForAny(waiting);
    for (size_t i = unnamed.size(); i-- > 0;) {
      if (waiting[i + 1].revents == 0) continue;
      Channel channel = std::move(unnamed[i]);
      unnamed.erase(unnamed.begin() + static_cast<ptrdiff_t>(i));
      greet(std::move(channel));
    }
    if (waiting[0].revents != 0) unnamed.push_back(listener.accept());
    requireProcesses();
    if (Clock::now() > deadline) failWithLog(fmt::format("not all of its {} ranks started in time", launch_.ranks));
  }
}

void ProcessTeam::greet(Channel channel) {
  const auto line = channel.receive();
  if (!line) failWithLog("a rank ended while starting");
  std::istringstream in(*line);
  std::string word;
  int rank = -1;
  Member member;
  in >> word;
  if (word == "error") failWithLog(line->substr(word.size() + 1));
  in >> rank >> member.processId >> member.host >> member.secret;
  if (word == "hello" && launch_.ranks == 1 && rank != launch_.firstRank)
    failWithLog(
        fmt::format("the process that was started for rank {} takes itself for rank {}: its library is not that "
                    "of the launcher",
                    launch_.firstRank, rank));
  const auto place = static_cast<size_t>(rank - launch_.firstRank);
  if (word != "hello" || rank < 0 || place >= members_.size() || members_[place].processId != 0)
    failWithLog(
        fmt::format("unexpected greeting \"{}\" for {} ranks from {} on", *line, launch_.ranks, launch_.firstRank));
  if (!launch_.hosts.empty() && launch_.hosts[place] != member.host)
    failWithLog(fmt::format("rank {} was started on {} instead of {}", rank, member.host, launch_.hosts[place]));
  members_[place] = member;
  channels_[place] = std::move(channel);
}

void ProcessTeam::requireProcesses() {
  for (tools::Process& process : processes_)
    if (!process.isRunning()) failWithLog(fmt::format("ended while starting, {}", process.ending()));
}

std::vector<std::string> ProcessTeam::command(const std::string& line, std::chrono::seconds patience) {
  const size_t ranks = channels_.size();
  const auto number = [&](auto place) { return launch_.firstRank + static_cast<int>(place); };
  for (size_t r = 0; r < ranks; ++r) {
    try {
      channels_[r].send(line);
    } catch (const std::system_error&) {
      // Its end, or the error that it told before, is seen below.
    }
  }
  std::vector<std::optional<std::string>> answers(ranks);
  const auto deadline = Clock::now() + patience;
  for (size_t missing = ranks; missing > 0;) {
    std::vector<pollfd> waiting(ranks);
    for (size_t r = 0; r < ranks; ++r) waiting[r] = {answers[r] ? -1 : channels_[r].descriptor(), POLLIN, 0};
    waitForAny(waiting);
    for (size_t r = 0; r < ranks; ++r) {
      if (waiting[r].revents == 0) continue;
      const bool open = channels_[r].pump();
      answers[r] = channels_[r].takeLine();
      if (!answers[r] && !open) failWithLog(fmt::format("rank {} ended while doing \"{}\"", number(r), line));
      if (!answers[r]) continue;
      if (answers[r]->rfind("ok ", 0) != 0) {
        const std::string& message = *answers[r];
        failWithLog(fmt::format("rank {}: {}", number(r), message.substr(message.find(' ') + 1)));
      }
      answers[r] = answers[r]->substr(3);
      --missing;
    }
    if (missing > 0 && Clock::now() > deadline) {
      const auto silent = std::find(answers.begin(), answers.end(), std::nullopt) - answers.begin();
      failWithLog(fmt::format("rank {} did not finish \"{}\" within {} s", number(silent), line, patience.count()));
    }
  }
  std::vector<std::string> result;
  for (auto& answer : answers) result.push_back(std::move(*answer));
  return result;
}

void ProcessTeam::failWithLog(const std::string& what) {
  const std::string output = log_.tail(shownLogBytes);
  throw std::runtime_error(
      fmt::format("{}: {}{}", launch_.name, what, output.empty() ? "" : "\nThe end of its output:\n" + output));
}

}  // namespace tacc::bench
