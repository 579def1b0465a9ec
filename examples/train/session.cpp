#include "session.hpp"

#include <cstdio>
#include <fstream>

#include "model.hpp"
#include "plot.hpp"
#include "shapes.hpp"
#include "table.hpp"
#include "trainer.hpp"

namespace tacc::train {
namespace {

std::string titleOf(const Options& options, const Split& data, int ranks) {
  const std::size_t weights = makeModel(options.model, 1, data.train.side, data.train.classes)->parameterCount();
  return fmt::format("{} ({} weights), {} images of {} x {} ({}), {} to test; {} {}, batch {}, lr {:g}, momentum {:g}",
                     options.model, weights, data.train.size(), data.train.side, data.train.side,
                     options.data.empty() ? "shapes" : options.data, data.test.size(), ranks,
                     ranks == 1 ? "rank" : "ranks", options.batch, options.strategy.learningRate,
                     options.strategy.momentum);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void writeFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) fail("cannot write {}", path);
}

}  // namespace

Split loadData(const Options& options) {
  const Dataset all =
      options.data.empty() ? drawShapes(options.images, options.side, options.seed) : readDatasetFile(options.data);
  return splitDataset(all, options.seed);
}

void runSession(const Options& options, const Split& data, taccComm_t comm) {
  const Team team(comm);
  const Team alone;
  const std::string title = titleOf(options, data, team.ranks());
  const bool speaks = team.rank() == 0;
  if (speaks) print(tableHead(title));
  std::vector<Curve> curves;
  for (const Run& run : runsOf(options)) {
    Curve curve{run, {}};
    const auto onEpoch = [&](const EpochRecord& record) {
      curve.records.push_back(record);
      if (speaks) print(tableLine(run, record));
    };
    if (run.mode != "serial")
      train(options, run, data, team, comm, onEpoch);
    else if (speaks)
      train(options, run, data, alone, nullptr, onEpoch);
    team.meet();
    curves.push_back(std::move(curve));
  }
  if (!speaks) return;
  print(summaryTable(curves));
  if (!options.svg.empty()) writeFile(options.svg, drawTraining(title, curves));
}

}  // namespace tacc::train
