#include "coordinator/session.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "coordinator/interleave.hpp"
#include "coordinator/load.hpp"
#include "coordinator/reports.hpp"
#include "coordinator/team.hpp"
#include "support/output.hpp"
#include "worker/element.hpp"
#include "worker/messages.hpp"
#include "worker/worker.hpp"

namespace tacc::bench {
namespace {

/// A barrier has no size.
std::vector<size_t> sizesOf(const Options& options) {
  return options.collective->kind == Kind::barrier ? std::vector<size_t>{0} : options.sizes.list();
}

/// All calls that the options ask for, in the order of the table.
std::vector<Task> listTasks(const Options& options) {
  std::vector<Task> tasks;
  for (const taccDataType_t type : options.types)
    for (const taccRedOp_t op : options.ops)
      for (const int root : options.roots)
        for (const size_t size : sizesOf(options)) {
          const size_t elements = size / elementSize(type);
          const Shape shape = options.collective->shapeOfTotal(elements, elementSize(type), options.ranks);
          tasks.push_back({options.collective, type, op, root, shape.count});
        }
  return tasks;
}

size_t largestCall(const std::vector<Task>& tasks, int ranks) {
  size_t bytes = 1;
  for (const Task& task : tasks)
    bytes = std::max(bytes, task.collective->shape(task.count, ranks).largest() * elementSize(task.type));
  return (bytes + 63) / 64 * 64;
}

size_t availableMemory() {
  std::ifstream info("/proc/meminfo");
  std::string word;
  size_t kilobytes = 0;
  while (info >> word)
    if (word == "MemAvailable:" && info >> kilobytes) return kilobytes << 10;
  return SIZE_MAX;
}

/// Bytes per rank and direction through which the calls move: all ranks of a machine together use four times the
/// last-level cache, so that large calls find their data in memory, and at least two calls' worth, or one when memory
/// is scarce.
size_t choosePoolBytes(const Options& options, const std::vector<Task>& tasks, size_t teams, int ranksHere) {
  const size_t call = largestCall(tasks, options.ranks);
  const long cacheKnown = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const size_t cache = cacheKnown > 0 ? static_cast<size_t>(cacheKnown) : size_t{32} << 20;
  const size_t wanted = options.poolBytes > 0 ? options.poolBytes : 2 * cache / static_cast<size_t>(ranksHere);
  const size_t pools = 2 * teams * static_cast<size_t>(ranksHere);
  const size_t affordable = availableMemory() / 10 * 8 / pools;
  if (affordable < call)
    throw std::runtime_error(fmt::format(
        "not enough memory: {} ranks of {} libraries need {} for calls of {}, and {} are available", ranksHere, teams,
        tools::formatSize(pools * call), tools::formatSize(call), tools::formatSize(availableMemory())));
  return std::min({std::max(wanted, 2 * call), mostSlots * call, affordable});
}

/// As a line that a run left which was ended while it wrote, or whose disk was full.
bool endsInTheMiddleOfALine(const std::string& name) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(name, unknown)) return false;  // opening a pipe would wait for who writes
  std::ifstream file(name, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() <= 0) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

void writeFile(const std::string& name, const std::string& text, bool appends) {
  const bool begins = appends && endsInTheMiddleOfALine(name);
  std::ofstream file(name, appends ? std::ios::app : std::ios::trunc);
  file << (begins ? "\n" : "") << text;
  file.close();
  if (!file) throw std::runtime_error(fmt::format("cannot write {}", name));
}

int libraryVersion() {
  int version = 0;
  taccGetVersion(&version);
  return version;
}

/// As in "2026-05-01T12:00:00Z".
std::string timeNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

class Session {
 public:
  Session(const Options& options, Venue& venue) : options_(options), tasks_(listTasks(options)) {
    contest_.hosts = venue.hosts();
    // Between hosts the bound is computed, not measured.
    const bool measuresBound = options.bound && contest_.hosts == nullptr;
    std::vector<std::string> names = {options.reference};
    names.insert(names.end(), options.peers.begin(), options.peers.end());
    if (measuresBound) names.emplace_back("bound");
    const size_t pool = choosePoolBytes(options, tasks_, names.size(), venue.ranksHere());
    for (const std::string& name : names) {
      progress_.show("starting " + name);
      teams_.push_back(venue.start(name));
      teams_.back()->join();
      teams_.back()->command(fmt::format("{} {} {:d}", allocateCommand, pool, options.smallPages));
    }
    contest_.reference = teams_[0].get();
    for (size_t i = 0; i < options.peers.size(); ++i) contest_.peers.push_back(teams_[i + 1].get());
    if (measuresBound) contest_.bound = teams_.back().get();
  }

  /// Without a table.
  std::vector<Row> measureOnce() {
    std::vector<Row> rows;
    for (const Task& task : tasks_) add(task, rows);
    return rows;
  }

  std::vector<Row> run() {
    print(tableHeader(options_, contest_.reference->members(), libraryVersion()));
    std::vector<Row> rows;
    for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
      // Of what never ends nobody reads the rows of hours ago.
      if (options_.cycles == 0) rows.clear();
      for (const Task& task : tasks_) run(task, rows);
    }
    print(tableFooter(options_, rows) + summarize(options_, rows));
    return rows;
  }

  /// Of the reference, by rank.
  const std::vector<Member>& members() const { return contest_.reference->members(); }

 private:
  void add(const Task& task, std::vector<Row>& rows) {
    const size_t bytes = largestCall({task}, options_.ranks);
    const size_t number = rows.size() % tasks_.size() + 1;
    rows.push_back(measure(contest_, options_, task, [&](const std::string& what) {
      progress_.show(fmt::format("[{}/{}] {} {}: {}", number, tasks_.size(), options_.collective->name,
                                 tools::formatSize(bytes), what));
    }));
    progress_.clear();
  }

  void run(const Task& task, std::vector<Row>& rows) {
    add(task, rows);
    print(tableRow(options_, rows.back()));
    reportWrongPeers(rows.back());
  }

  void print(const std::string& text) {
    progress_.clear();
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  /// The table has no column for it.
  void reportWrongPeers(const Row& row) {
    progress_.clear();
    for (const PeerOutcome& peer : row.peers)
      if (peer.outcome && peer.outcome->wrong > 0)
        tools::complain("tacc_bench: {} had {} wrong elements at {}\n", peer.name, peer.outcome->wrong,
                        tools::formatSize(row.bytes));
  }

  const Options& options_;
  std::vector<Task> tasks_;
  tools::ProgressLine progress_;
  std::vector<std::unique_ptr<Team>> teams_;
  Contest contest_;
};

}  // namespace

bool runSession(const Options& options, Venue& venue) {
  tools::requireWritable(options.jsonFile);
  tools::requireWritable(options.plotFile);
  const std::string begin = timeNow();
  Session session(options, venue);
  const std::vector<Row> rows = [&] {
    const Load load(options.load);
    return session.run();
  }();
  if (!options.jsonFile.empty()) {
    const RunFacts facts{begin, timeNow(), libraryVersion(), session.members()};
    writeFile(options.jsonFile, jsonReport(options, facts, rows), options.appends);
  }
  if (!options.plotFile.empty())
    writeFile(options.plotFile, drawPlot(plotTitle(options), collectSeries(options, rows)), false);
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong() == 0; });
}

std::vector<Row> measureRows(const Options& options, Venue& venue) { return Session(options, venue).measureOnce(); }

}  // namespace tacc::bench
