#include "session.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "comm/launch/launch_id.hpp"
#include "core/error.hpp"
#include "core/text_file.hpp"
#include "gauge.hpp"
#include "point.hpp"
#include "report.hpp"
#include "selection/tuning/tuning_file.hpp"
#include "support/output.hpp"
#include "support/sizes.hpp"

namespace tacc::tune {
namespace {

/// A point is given so much of the budget at most: after that nothing new is learnt. 4 s are too few for calls of some
/// bytes where ranks share cores (docs/use/tuning.md).
constexpr double enoughSeconds = 10;

std::vector<Point> listPoints(const Options& options, int ranks) {
  std::vector<Point> points;
  for (const Collective collective : options.collectives) {
    const CollectiveShape& shape = shapeOf(collective);
    const bool hasParts = ranks > 1 && (shape.send.holds == Holds::all || shape.receive.holds == Holds::all);
    for (const std::size_t size : options.sizes) {
      const std::size_t elements = std::max<std::size_t>(1, size / sizeof(float));
      const std::size_t count = hasParts ? tools::partOf(elements, sizeof(float), ranks) : elements;
      const std::size_t blocks = hasParts ? static_cast<std::size_t>(ranks) : 1;
      const Point point{collective, count, count * blocks * sizeof(float)};
      // Small sizes of which every rank has a part become the same.
      if (points.empty() || points.back().collective != collective || points.back().count != point.count)
        points.push_back(point);
    }
  }
  return points;
}

std::size_t largestOf(const std::vector<Point>& points) {
  std::size_t bytes = 0;
  for (const Point& point : points) bytes = std::max(bytes, point.total);
  return bytes;
}

/// What is written first and then renamed: whoever reads sees the old file or the whole new one.
std::string freshOf(const std::string& path) { return path + ".new"; }

void writeFile(const std::string& path, const std::string& text) {
  const std::string fresh = freshOf(path);
  std::ofstream file(fresh, std::ios::binary);
  file << text;
  file.close();
  if (!file) failErrno("{} cannot be written", fresh);
  std::filesystem::rename(fresh, path);
}

class Session {
 public:
  Session(const Options& options, JoinedCommunicator& comm)
      : options_(options),
        points_(listPoints(options, comm.ranks())),
        gauge_(comm, largestOf(points_)),
        isFirst_(comm.rank() == 0),
        part_(options.output + ".part") {
    tuning_.place = comm.place();
  }

  void run() {
    resume();
    if (isFirst_) say(headerOf(tuning_.place, points_.size()));
    double used = 0;
    for (number_ = 0; number_ < points_.size(); ++number_) {
      const Point& point = points_[number_];
      Row row{point, resultOf(point), {}};
      if (row.result.bytes == 0) {
        const double left = std::max(0.0, options_.minutes * 60 - used);
        const double share = std::min(enoughSeconds, left / static_cast<double>(points_.size() - number_));
        row.entrants = measure(gauge_, point, share, options_.measuresRegret,
                               [&](const std::string& route) { show(route, used); });
        row.result = tune::resultOf(point, row.entrants);
        used = gauge_.elapsed();
        tuning_.add(point.collective, row.result);
        if (isFirst_ && !options_.output.empty()) writeFile(part_, tuningToToml(tuning_));
      }
      if (isFirst_) say(lineOf(row));
      rows_.push_back(std::move(row));
    }
    if (isFirst_) finish();
  }

 private:
  /// What was measured of a point before; bytes is 0 if it was not.
  TunedSize resultOf(const Point& point) const {
    for (const TunedCollective& measured : tuning_.collectives)
      for (const TunedSize& size : measured.sizes)
        if (measured.collective == point.collective && size.bytes == point.bytes()) return size;
    return {};
  }

  /// All ranks take over what rank 0 finds.
  void resume() {
    std::string text;
    std::string problem;
    if (isFirst_ && !options_.output.empty() && !options_.restart) {
      for (const std::string& path : {options_.output, part_})
        if (auto found = readTextIfThere(path)) text = *std::move(found);
      problem = text.empty() ? "" : problemOf(text);
    }
    if (isFirst_ && problem.empty()) problem = unwritable();
    std::array<std::uint64_t, 2> sizes = {text.size(), problem.size()};
    share(sizes.data(), sizeof(sizes));
    problem.resize(sizes[1]);
    share(problem.data(), problem.size());
    if (!problem.empty()) fail(taccInvalidUsage, "{}", problem);
    text.resize(sizes[0]);
    share(text.data(), text.size());
    if (!text.empty()) tuning_.collectives = tuningFromToml(text, part_).collectives;
  }

  std::string unwritable() const {
    try {
      tools::requireWritable(options_.regrets);
      for (const std::string& path : {options_.json, options_.output.empty() ? "" : part_})
        if (!path.empty()) tools::requireWritable(freshOf(path));
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  std::string problemOf(const std::string& text) const {
    try {
      const std::string difference = differenceOf(tuningFromToml(text, part_).place, tuning_.place);
      if (difference.empty()) return "";
      return fmt::format("{} cannot be continued: {}; take --restart, or another --output", part_, difference);
    } catch (const Error& error) {
      return fmt::format("{}; take --restart, or another --output", error.what());
    }
  }

  void share(void* data, std::size_t bytes) {
    if (bytes > 0)
      gauge_.comm().run(
          {.collective = Collective::broadcast, .send = data, .receive = data, .count = bytes, .type = taccUint8});
  }

  void show(const std::string& route, double used) {
    if (!isFirst_) return;
    const Point& point = points_[number_];
    progress_.show(fmt::format("[{}] {}/{} {} {}: {}, {:.0f} s",
                               barOf(static_cast<double>(number_) / static_cast<double>(points_.size())), number_ + 1,
                               points_.size(), nameOf(point.collective), tools::formatSize(point.total), route, used));
  }

  void say(const std::string& text) {
    progress_.clear();
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  void finish() {
    const std::vector<double> regrets = regretsOf(rows_);
    say(summaryOf(regrets, options_.measuresRegret    ? "chosen freely"
                           : options_.checked.empty() ? "chosen without a file"
                                                      : "chosen by the file"));
    if (!options_.regrets.empty()) {
      std::ofstream file(options_.regrets, std::ios::app);
      for (const double regret : regrets) file << regret << '\n';
      file.close();
      if (!file) failErrno("{} cannot be written", options_.regrets);
    }
    if (!options_.json.empty()) writeFile(options_.json, jsonOf(tuning_.place, rows_));
    if (options_.output.empty()) return;
    writeFile(options_.output, tuningToToml(tuning_));
    std::filesystem::remove(part_);
    say(fmt::format("# written: {} (use it with TACC_TUNE_FILE={})\n", options_.output, options_.output));
  }

  const Options& options_;
  std::vector<Point> points_;
  Gauge gauge_;
  bool isFirst_;
  std::string part_;
  Tuning tuning_;
  std::vector<Row> rows_;
  std::size_t number_ = 0;
  tools::ProgressLine progress_;
};

}  // namespace

void runSession(const Options& options) {
  // What is measured is what the library does without a file, or with the one that is checked.
  ::setenv("TACC_TUNE_FILE", options.checked.empty() ? "none" : options.checked.c_str(), 1);
  const LaunchedRank launched = findLaunch();
  CommConfig config;
  config.name = "tacc_tune";
  const auto comm = Communicator::join(launched.id, launched.ranks, launched.rank, config);
  launched.number->keep();
  auto& joined = dynamic_cast<JoinedCommunicator&>(*comm);
  if (!joined.config().algorithm.empty())
    fail(taccInvalidUsage, "TACC_ALGO={} forces one algorithm, so there is nothing to compare; unset it",
         joined.config().algorithm);
  Session(options, joined).run();
}

}  // namespace tacc::tune
