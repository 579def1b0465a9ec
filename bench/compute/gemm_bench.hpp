// tacc_bench gemm: products of matrices, shape by shape, beside other libraries.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compute/gemm_problem.hpp"

namespace tacc::bench {

struct GemmOptions {
  std::vector<GemmShape> shapes;
  std::vector<std::string> peers;
  int threads = 1;
  double seconds = 0.3;        ///< for one shape, all contestants together
  bool packs = false;          ///< every run brings B into its order first
  bool processorTime = false;  ///< of the calling thread, in place of the time that passes
  std::string jsonFile, plotFile;
};

struct GemmTime {
  double seconds;
  std::string implementation;
  std::size_t wrong;
};

/// One line of the table.
struct GemmResult {
  GemmShape shape;
  GemmTime tacc;
  std::map<std::string, GemmTime> peers;
  double gflops(const GemmTime& time) const { return shape.operations() / time.seconds * 1e-9; }
};

struct GemmReport {
  GemmOptions options;
  std::string isa;
  double peak = 0;  ///< floating-point operations per second of all threads together
  std::vector<GemmResult> results;
};

std::string gemmJson(const GemmReport& report);
/// One line of the table, with the line end.
std::string gemmLine(const GemmReport& report, const GemmResult& result);
/// Geometric means over the shapes.
std::string gemmSummary(const GemmReport& report);
/// An SVG drawing of GFLOP/s, a group of bars for every shape.
std::string gemmPlot(const GemmReport& report);

/// The program's way in: arguments after "gemm". Returns the exit status: 1 when a result of tacc is wrong.
int runGemmBench(int argc, char** argv);

}  // namespace tacc::bench
