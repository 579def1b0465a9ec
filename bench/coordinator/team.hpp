#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/launch.hpp"
#include "support/process.hpp"
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
  std::string secret = "";  ///< what others need to join; most say nothing
};

/// All ranks of one contestant, alive for the whole run and asleep unless a command is being obeyed. Whatever goes
/// wrong becomes a std::runtime_error that names contestant and rank.
class Team {
 public:
  static constexpr std::chrono::seconds defaultPatience{300};

  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  virtual ~Team() = default;

  virtual const std::string& name() const = 0;
  /// By rank.
  virtual const std::vector<Member>& members() const = 0;
  /// Gives `line` to all ranks and waits for their answers, by rank and without the "ok".
  virtual std::vector<std::string> command(const std::string& line,
                                           std::chrono::seconds patience = defaultPatience) = 0;

  /// Lets all ranks join with the secret that one of them has said.
  void join();
};

/// A team whose processes this one has started: all of a contestant's, or those of some ranks. They end with it.
class ProcessTeam final : public Team {
 public:
  /// Starts them and hears who they are.
  ProcessTeam(Launch launch, Listener& listener);
  ~ProcessTeam() override;

  const std::string& name() const override { return launch_.name; }
  const std::vector<Member>& members() const override { return members_; }
  std::vector<std::string> command(const std::string& line, std::chrono::seconds patience = defaultPatience) override;

 private:
  void start(Listener& listener);
  void greet(Channel channel);
  void requireProcesses();
  [[noreturn]] void failWithLog(const std::string& what);

  Launch launch_;
  tools::MemoryFile log_;
  std::vector<tools::Process> processes_;
  std::vector<Channel> channels_;
  std::vector<Member> members_;
};

}  // namespace tacc::bench
