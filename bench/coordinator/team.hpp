#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/launch.hpp"
#include "coordinator/process.hpp"
#include "worker/channel.hpp"

namespace tacc::bench {

/// Where ranks connect: a socket that only this user's processes are let in to.
class Listener {
 public:
  /// `acrossHosts`: ranks in other network namespaces reach it too.
  explicit Listener(bool acrossHosts);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::string& address() const { return address_; }
  int descriptor() const { return descriptor_; }
  /// The next connection, which must be waiting.
  Channel accept();

 private:
  std::optional<TemporaryDirectory> directory_;
  std::string address_;
  int descriptor_;
};

/// Who a rank says it is.
struct Member {
  int processId = 0;
  std::string host;
};

/// All ranks of one contestant, alive for the whole run and asleep unless a command is being obeyed. Whatever goes
/// wrong becomes a std::runtime_error that names contestant and rank; destroying the team ends its processes.
class Team {
 public:
  Team(Launch launch, Listener& listener);
  Team(Team&&) = default;
  Team& operator=(Team&&) = delete;
  ~Team();

  const std::string& name() const { return launch_.name; }
  /// By rank.
  const std::vector<Member>& members() const { return members_; }

  /// Gives `line` to all ranks and waits for their answers, by rank and without the "ok".
  std::vector<std::string> command(const std::string& line, std::chrono::seconds patience = defaultPatience);

 private:
  static constexpr std::chrono::seconds startPatience{60};
  static constexpr std::chrono::seconds defaultPatience{300};

  void start(Listener& listener);
  void greet(Channel channel);
  void requireProcesses();
  [[noreturn]] void failWithLog(const std::string& what);

  Launch launch_;
  MemoryFile log_;
  std::vector<Process> processes_;
  std::vector<Channel> channels_;
  std::vector<Member> members_;
  std::string secret_ = "-";
};

}  // namespace tacc::bench
