#include "session.hpp"

#include <cstdio>
#include <fstream>

#include "comparison.hpp"
#include "model.hpp"
#include "plot.hpp"
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

/// Every way to train, once. Rank 0 prints each epoch, or the last.
std::vector<Curve> runTrial(Options options, const Trial& trial, const Team& team, taccComm_t comm, bool printsEpochs) {
  options.seed = trial.seed;
  const Team alone;
  const bool speaks = team.rank() == 0;
  std::vector<Curve> curves;
  for (const Run& run : runsOf(options)) {
    Curve curve{run, {}};
    const auto onEpoch = [&](const EpochRecord& record) {
      curve.records.push_back(record);
      if (speaks && (printsEpochs || record.epoch == options.epochs)) print(tableLine(run, record));
    };
    if (run.mode != "serial")
      train(options, run, trial.data, team, comm, onEpoch);
    else if (speaks)
      train(options, run, trial.data, alone, nullptr, onEpoch);
    team.meet();
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace

void runSession(const Options& options, const std::vector<Trial>& trials, taccComm_t comm) {
  const Team team(comm);
  const std::string title = titleOf(options, trials[0].data, team.ranks());
  const bool speaks = team.rank() == 0;
  if (speaks) print(tableHead(title));
  std::vector<Curve> curves;
  Comparison comparison;
  for (const Trial& trial : trials) {
    if (speaks && trials.size() > 1) print(fmt::format("# seed {}, tested on part {}\n", trial.seed, trial.fold + 1));
    curves = runTrial(options, trial, team, comm, trials.size() == 1);
    for (const Curve& curve : curves)
      if (!curve.records.empty())
        comparison.add(curve.run, trial.seed, curve.records.back().testAccuracy, trial.data.test.size());
  }
  if (!speaks) return;
  print(trials.size() == 1 ? summaryTable(curves) : comparison.table());
  if (!options.svg.empty()) writeFile(options.svg, drawTraining(title, curves));
}

}  // namespace tacc::train
