// What the program was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategy.hpp"

namespace tacc::train {

struct Options {
  std::string model = "lenet";
  std::string data;              // a file; empty: shapes are drawn
  int images = 3000, side = 16;  // of shapes

  std::vector<std::string> modes = {"serial", "allreduce"};  // one run after the other
  std::vector<int> taus = {4};                               // elastic modes run with each of these
  int epochs = 20;
  int batch = 8;                           // of each rank
  std::string schedule = "cosine";         // how the learning rate changes from epoch to epoch
  std::vector<std::uint64_t> seeds = {1};  // all runs with each of these
  int folds = 1;                           // and with so many parts of the images to test with, one after the other
  std::uint64_t seed = 1;                  // of the run
  StrategyOptions strategy;                // but mode and period, which are those of the run

  int ranks = 2;          // to start
  bool launched = false;  // something else has started them
  std::string svg;        // file to draw to; empty: none
};

/// Ends the process where the arguments are wrong, or ask for help.
Options parseOptions(int argc, char** argv);

}  // namespace tacc::train
