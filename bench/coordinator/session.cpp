#include "coordinator/session.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "coordinator/interleave.hpp"
#include "coordinator/interrupt.hpp"
#include "coordinator/json_report.hpp"
#include "coordinator/plot.hpp"
#include "coordinator/progress_line.hpp"
#include "coordinator/summary.hpp"
#include "coordinator/table.hpp"
#include "coordinator/team.hpp"
#include "worker/element.hpp"
#include "worker/messages.hpp"
#include "worker/worker.hpp"

namespace tacc::bench {
namespace {

/// All calls that the options ask for, in the order of the table.
std::vector<Task> listTasks(const Options& options) {
  std::vector<Task> tasks;
  for (const taccDataType_t type : options.types)
    for (const taccRedOp_t op : options.ops)
      for (const int root : options.roots)
        for (const size_t size : options.sizes.list()) {
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

/// Bytes per rank and direction through which the calls move: all ranks together use four times the last-level cache,
/// so that large calls find their data in memory, and at least two calls' worth, or one when memory is scarce.
size_t choosePoolBytes(const Options& options, const std::vector<Task>& tasks, size_t teams) {
  const size_t call = largestCall(tasks, options.ranks);
  const long cacheKnown = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const size_t cache = cacheKnown > 0 ? static_cast<size_t>(cacheKnown) : size_t{32} << 20;
  const size_t wanted = options.poolBytes > 0 ? options.poolBytes : 2 * cache / static_cast<size_t>(options.ranks);
  const size_t pools = 2 * teams * static_cast<size_t>(options.ranks);
  const size_t affordable = availableMemory() / 10 * 8 / pools;
  if (affordable < call)
    throw std::runtime_error(
        fmt::format("not enough memory: {} ranks of {} libraries need {} for calls of {}, and {} are available",
                    options.ranks, teams, formatSize(pools * call), formatSize(call), formatSize(availableMemory())));
  return std::min({std::max(wanted, 2 * call), mostSlots * call, affordable});
}

void writeFile(const std::string& name, const std::string& text) {
  std::ofstream file(name);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(fmt::format("cannot write {}", name));
}

/// Fails before the measurement rather than after it.
void requireWritable(const std::string& name) {
  if (!name.empty() && !std::ofstream(name, std::ios::app))
    throw std::runtime_error(fmt::format("cannot write {}", name));
}

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options), tasks_(listTasks(options)), listener_(options.cluster.has_value()) {
    if (options.cluster) {
      progress_.show("making the virtual cluster");
      hosts_.emplace(*options.cluster, options.placement, options.ranks);
      contest_.hosts = &*hosts_;
    }
    const Site site{listener_.address(), contest_.hosts};
    // Between hosts the bound is computed, not measured.
    const bool measuresBound = options.bound && !hosts_;
    std::vector<Launch> launches;
    launches.push_back(options.reference == "tacc" ? launchTacc(options, site)
                                                   : launchPeer(options.reference, options, site));
    for (const std::string& peer : options.peers) launches.push_back(launchPeer(peer, options, site));
    if (measuresBound) launches.push_back(launchBound(options, site));
    const size_t pool = choosePoolBytes(options, tasks_, launches.size());
    for (Launch& launch : launches) {
      progress_.show("starting " + launch.name);
      teams_.push_back(std::make_unique<Team>(std::move(launch), listener_));
      teams_.back()->command(fmt::format("{} {}", allocateCommand, pool));
    }
    contest_.reference = teams_[0].get();
    for (size_t i = 0; i < options.peers.size(); ++i) contest_.peers.push_back(teams_[i + 1].get());
    if (measuresBound) contest_.bound = teams_.back().get();
  }

  std::vector<Row> run() {
    int version = 0;
    taccGetVersion(&version);
    print(tableHeader(options_, contest_.reference->members(), version));
    std::vector<Row> rows;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const size_t bytes = largestCall({tasks_[i]}, options_.ranks);
      rows.push_back(measure(contest_, options_, tasks_[i], [&](const std::string& what) {
        progress_.show(
            fmt::format("[{}/{}] {} {}: {}", i + 1, tasks_.size(), options_.collective->name, formatSize(bytes), what));
      }));
      print(tableRow(options_, rows.back()));
      reportWrongPeers(rows.back());
    }
    print(tableFooter(options_, rows) + summarize(options_, rows));
    return rows;
  }

 private:
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
        fmt::print(stderr, "tacc_bench: {} had {} wrong elements at {}\n", peer.name, peer.outcome->wrong,
                   formatSize(row.bytes));
  }

  const Options& options_;
  std::vector<Task> tasks_;
  ProgressLine progress_;
  // Taken down after the teams on it have ended.
  std::optional<VirtualHosts> hosts_;
  Listener listener_;
  std::vector<std::unique_ptr<Team>> teams_;
  Contest contest_;
};

}  // namespace

bool runSession(const Options& options) {
  catchInterrupts();
  requireWritable(options.jsonFile);
  requireWritable(options.plotFile);
  const std::vector<Row> rows = Session(options).run();
  if (!options.jsonFile.empty()) writeFile(options.jsonFile, jsonReport(options, rows));
  if (!options.plotFile.empty())
    writeFile(options.plotFile, drawPlot(plotTitle(options), collectSeries(options, rows)));
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong() == 0; });
}

}  // namespace tacc::bench
