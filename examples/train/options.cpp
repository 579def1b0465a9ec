#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "dataset.hpp"
#include "errors.hpp"
#include "model.hpp"

namespace tacc::train {
namespace {

void declare(CLI::App& app, Options& options) {
  app.add_option("--mode", options.modes,
                 fmt::format("how ranks train together, one after the other: all, or some of {} (serial,allreduce)",
                             fmt::join(modeNames(), ", ")))
      ->delimiter(',');
  app.add_option("--tau", options.taus, "elastic modes: every so many steps exchange; several: one run for each (4)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--ranks", options.ranks, "processes to start on this host (2)")->check(CLI::Range(1, 1024));
  app.add_flag("--launched", options.launched, "a launcher has started the ranks: this process is one of them");
  app.add_option("--model", options.model, "softmax (regression) or lenet (lenet)")->check(CLI::IsMember(modelNames()));
  app.add_option("--data", options.data, "file of images, as export_digits.py writes it; without it shapes are drawn");
  app.add_option("--images", options.images, "shapes: how many to draw (3000)")->check(CLI::Range(50, 1'000'000));
  app.add_option("--side", options.side, "shapes: pixels of a side, a multiple of 4 (16)");
  app.add_option("--epochs", options.epochs, "passes of all ranks together over all images (20)")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--batch", options.batch, "images of one step of one rank (8)")->check(CLI::Range(1, 65536));
  app.add_option("--lr", options.strategy.learningRate, "learning rate (0.02)")->check(CLI::PositiveNumber);
  app.add_option("--schedule", options.schedule,
                 "how the learning rate goes on: down to 0 by a cosine, from epoch to epoch, or constant (cosine)")
      ->check(CLI::IsMember({"cosine", "constant"}));
  app.add_option("--momentum", options.strategy.momentum, "0 to below 1 (0.9)")->check(CLI::Range(0.0, 0.9999));
  app.add_option("--elasticity", options.strategy.elasticity, "elastic modes: rho; 0: ranks * lr * rho is 0.9 (0)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--wire", options.strategy.wire, "sync2, sync3, hierarchical: what is sent for each weight (float32)")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  app.add_option("--group", options.strategy.group,
                 "hierarchical: ranks of one host, numa or network group keep together, or so many neighbours (2)");
  app.add_option("--seed", options.seeds,
                 "of images, their order and the first weights; several: all modes with each (1)")
      ->delimiter(',');
  app.add_option("--folds", options.folds,
                 "which fifths of the images to test with, one after the other: 5, all of them (1)")
      ->check(CLI::Range(1, foldCount));
  app.add_option("--svg", options.svg,
                 "draw loss and accuracy over time and over images, and the share of communication, to this file");
}

void understand(Options& options) {
  const std::vector<std::string> known = modeNames();
  if (std::ranges::count(options.modes, "all") > 0) options.modes = known;
  for (const std::string& mode : options.modes)
    if (std::ranges::count(known, mode) == 0)
      fail("--mode: unknown mode \"{}\"; there are all, {}", mode, fmt::join(known, ", "));
  if (!isSide(options.side))
    fail("--side is {}; it has to be a multiple of 4 from {} to {}", options.side, leastSide, mostSide);
}

}  // namespace

Options parseOptions(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Trains a small network on several ranks, synchronously and by elastic averaging. See "
      "docs/use/easgd_training.md.",
      "tacc_train");
  declare(app, options);
  try {
    app.parse(argc, argv);
    understand(options);
    return options;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    std::fprintf(stderr, "tacc_train: %s\nTry tacc_train --help.\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tacc_train: %s\nTry tacc_train --help.\n", error.what());
  }
  std::exit(2);
}

}  // namespace tacc::train
