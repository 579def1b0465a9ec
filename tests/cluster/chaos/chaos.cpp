// Random correct programs on a virtual cluster whose ranks, hosts and links fail at random: every call ends right or
// with an error that blames one who failed, and those who are left go on together.
//
//   chaos [--seconds N] [--seed S] [--hosts N] [--ranks N (of a host)] [--faults kill,stop,...]
//         [--parts] [--tell]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <map>
#include <string>

#include "chaos/program.hpp"
#include "chaos/saboteur.hpp"

namespace tacc::chaos {
namespace {

constexpr int skipped = 77;
constexpr double roundSeconds = 20, joinSeconds = 60, endSeconds = 2 * initTimeout + 2 * grace;
constexpr int fewest = 3;  // ranks with which a round goes on
constexpr int napMicroseconds = 5000;

struct Options {
  double seconds = 25;
  std::uint32_t seed = 1;
  int hosts = 3, ranksOfHost = 2;
  bool hasParts = false, tellsAll = false;
  std::vector<std::string> faults{faultNames.begin(), faultNames.end()};
};

struct Sums {
  std::uint64_t calls = 0, errors = 0, shrinks = 0;
  int rounds = 0, problems = 0;
  std::map<std::string_view, int> faults;
};

/// All who got a communicator out of one got the same.
void checkViews(Board& board, int round, int ranks) {
  for (int a = 0; a < ranks; ++a)
    for (int i = 0; i < board.seats[a].viewCount; ++i)
      for (int b = a + 1; b < ranks; ++b)
        for (int j = 0; j < board.seats[b].viewCount; ++j) {
          const View &one = board.seats[a].views[i], &other = board.seats[b].views[j];
          if (one.before != other.before || one.generation != other.generation || one.after == other.after) continue;
          tellProblem(
              board, round, a,
              fmt::format("split: of {:#x} it kept {:#x}, rank {} kept {:#x}", one.before, one.after, b, other.after));
        }
}

class Team {
 public:
  Team(const test::VirtualCluster& cluster, const Options& options, const Round& round, Board& board)
      : board_(board), round_(round) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    for (int rank = 0; rank < round.ranks; ++rank) {
      hosts_.push_back(1 + rank / options.ranksOfHost);
      const pid_t child = ::fork();
      if (child == 0) test::endAfter([&] { return beRank(cluster, ends, rank); });
      ranks_.push_back(child);
    }
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Team() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (const pid_t child = board_.seats[rank].child) ::kill(child, SIGKILL);
      if (isGone_[rank]) continue;
      ::kill(ranks_[rank], SIGKILL);
      ::waitpid(ranks_[rank], nullptr, 0);
    }
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  const std::vector<int>& hosts() const { return hosts_; }
  const std::vector<pid_t>& ranks() const { return ranks_; }

  /// Collects those that have ended; a problem when nobody has ended them and they did not end well.
  void collect() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      int status = 0;
      if (isGone_[rank] || ::waitpid(ranks_[rank], &status, WNOHANG) != ranks_[rank]) continue;
      isGone_[rank] = true;
      board_.seats[rank].stage = Stage::over;
      if (status != 0 && board_.seats[rank].sabotagedTill == 0)
        tellProblem(board_, round_.number, static_cast<int>(rank), fmt::format("ended with status {:#x}", status));
    }
  }

  bool isGone() const {
    return std::all_of(isGone_, isGone_ + round_.ranks, [](bool gone) { return gone; });
  }

  int count(Stage stage) const {
    int count = 0;
    for (int rank = 0; rank < round_.ranks; ++rank) count += board_.seats[rank].stage == stage ? 1 : 0;
    return count;
  }

 private:
  int beRank(const test::VirtualCluster& cluster, const int* ends, int rank) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    cluster.enter(hosts_[static_cast<std::size_t>(rank)]);
    taccUniqueId id{};
    if (rank == 0) {
      if (taccGetUniqueId(&id) != taccSuccess) return 1;
      for (int other = 1; other < round_.ranks; ++other) (void)!::write(ends[1], &id, sizeof id);
    } else if (::read(ends[0], &id, sizeof id) != static_cast<ssize_t>(sizeof id)) {
      return 1;
    }
    runRank(round_, board_, id, rank);
    return 0;
  }

  Board& board_;
  Round round_;
  std::vector<int> hosts_;
  std::vector<pid_t> ranks_;
  bool isGone_[mostRanks] = {};
};

void playRound(const test::VirtualCluster& cluster, const Options& options, const std::vector<Fault>& faults,
               std::mt19937& random, double end, Sums& sums) {
  Board& board = *Board::make();
  board.tellsAll = options.tellsAll;
  const Round round{static_cast<std::uint32_t>(random()), ++sums.rounds, options.hosts * options.ranksOfHost,
                    options.hasParts};
  Team team(cluster, options, round, board);
  const double start = now();
  while (team.count(Stage::joining) > 0 && now() < start + joinSeconds) {
    team.collect();
    ::usleep(napMicroseconds);
  }
  if (team.count(Stage::calling) < round.ranks) tellProblem(board, round.number, -1, "not all have joined");
  {
    Saboteur saboteur(cluster, team.hosts(), team.ranks(), board, faults, random);
    const double last = std::min(end, now() + roundSeconds);
    for (double next = now() + 0.3; now() < last; ::usleep(napMicroseconds)) {
      team.collect();
      saboteur.attend();
      if (team.count(Stage::calling) + team.count(Stage::shrinking) < fewest) break;
      if (now() < next || team.count(Stage::shrinking) > 0) continue;
      ++sums.faults[faultNames[static_cast<std::size_t>(saboteur.strike())]];
      next = now() + 0.2 + static_cast<double>(random() % 2000) / 1000;
    }
    board.stop = true;
    for (const double patience = now() + endSeconds; now() < patience && team.count(Stage::over) < round.ranks;) {
      team.collect();
      saboteur.attend();
      ::usleep(napMicroseconds);
    }
  }
  board.mayEnd = true;
  for (const double patience = now() + grace; now() < patience && !team.isGone(); ::usleep(napMicroseconds))
    team.collect();
  for (int rank = 0; rank < round.ranks; ++rank) {
    const Seat& seat = board.seats[rank];
    if (seat.stage != Stage::over && seat.sabotagedTill < start)
      tellProblem(
          board, round.number, rank,
          fmt::format("hangs in stage {} for {:.1f} s", static_cast<int>(seat.stage.load()), now() - seat.since));
    sums.calls += seat.calls;
    sums.errors += seat.errors;
    sums.shrinks += static_cast<std::uint64_t>(seat.viewCount);
  }
  checkViews(board, round.number, round.ranks);
  sums.problems += board.problems;
}

std::string summary(const Options& options, const Sums& sums) {
  std::string faults;
  for (const auto& [name, count] : sums.faults)
    faults += fmt::format("{}{} {}", faults.empty() ? "" : ", ", name, count);
  return fmt::format("seed {}: {} rounds, {} calls, {} errors, {} shrinks; faults: {}; wrong: {}", options.seed,
                     sums.rounds, sums.calls, sums.errors, sums.shrinks, faults, sums.problems);
}

int run(const Options& options) {
  if (const std::string reason = test::VirtualCluster::obstacle(); !reason.empty()) {
    fmt::print("{}", reason);
    return skipped;
  }
  std::vector<Fault> faults;
  for (const std::string& name : options.faults) {
    const auto found = std::ranges::find(faultNames, name);
    if (found == faultNames.end()) throw std::runtime_error("no such fault: " + name);
    faults.push_back(static_cast<Fault>(found - faultNames.begin()));
  }
  const test::VirtualCluster cluster(1, options.hosts);
  std::mt19937 random(options.seed);
  Sums sums;
  const double end = now() + options.seconds;
  for (double told = now(); now() < end;) {
    playRound(cluster, options, faults, random, end, sums);
    if (now() < told + 60) continue;
    fmt::print("{}\n", summary(options, sums));
    std::fflush(stdout);
    told = now();
  }
  fmt::print("{}\n", summary(options, sums));
  return sums.problems == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tacc::chaos

int main(int argc, char** argv) {
  tacc::chaos::Options options;
  CLI::App app{"Random programs and random faults on a virtual cluster."};
  app.add_option("--seconds", options.seconds, "how long");
  app.add_option("--seed", options.seed, "of programs and faults");
  app.add_option("--hosts", options.hosts, "of the cluster");
  app.add_option("--ranks", options.ranksOfHost, "of each host");
  app.add_option("--faults", options.faults, "those that are drawn from")->delimiter(',');
  app.add_flag("--parts", options.hasParts, "ranks call on parts of their communicators too, in threads of their own");
  app.add_flag("--tell", options.tellsAll, "every fault and every error, with the moment, to standard error");
  CLI11_PARSE(app, argc, argv);
  return tacc::chaos::run(options);
}
