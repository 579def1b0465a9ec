#include "tune_conv.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>

#include "support/aligned_floats.hpp"
#include "support/command_line.hpp"
#include "support/networks/layers.hpp"
#include "support/output.hpp"
#include "support/turns.hpp"
#ifdef TACC_TUNE_OPENMP
#include "tacc/compute_openmp.h"
#endif

namespace tacc::tune {
namespace {

using tools::AlignedFloats;

/// How many times slower than the fastest an algorithm may look, by the model and in its first run.
constexpr double farByModel = 8, farMeasured = 2;

void check(taccResult_t result) {
  if (result != taccSuccess) throw std::runtime_error(taccGetLastError(nullptr));
}

AlignedFloats someNumbers(std::size_t bytes) {
  AlignedFloats floats((bytes + sizeof(float) - 1) / sizeof(float));
  tools::fillWithSmallIntegers(floats, 1);
  return floats;
}

/// One algorithm, ready to run. The tensors are common to all.
class Attempt {
 public:
  Attempt(taccConvDesc_t desc, const std::string& algorithm) : algorithm_(algorithm), packed_(0), workspace_(0) {
    desc.algorithm = algorithm_.c_str();
    taccConvPlan_t plan = nullptr;
    check(taccConvPlanCreate(&plan, &desc));
    plan_.reset(plan);
    check(taccConvPlanGetInfo(plan, &info_));
  }
  const taccConvInfo_t& info() const { return info_; }
  const std::string& algorithm() const { return algorithm_; }

  void prepare(const float* weights) {
    packed_ = AlignedFloats(info_.packedWeightBytes / sizeof(float));
    workspace_ = AlignedFloats(info_.workspaceBytes / sizeof(float));
    if (info_.packedWeightBytes > 0) check(taccConvPackWeights(plan_.get(), weights, packed_.data()));
  }
  void run(taccConvBuffers_t buffers, const taccExecutor_t& executor) {
    buffers.packedWeights = packed_.data();
    buffers.workspace = workspace_.data();
    buffers.workspaceBytes = info_.workspaceBytes;
    check(taccConvRun(plan_.get(), &buffers, &executor));
  }

 private:
  struct DestroyPlan {
    void operator()(taccConvPlan_t plan) const { taccConvPlanDestroy(plan); }
  };
  std::string algorithm_;
  std::unique_ptr<taccConvPlan, DestroyPlan> plan_;
  taccConvInfo_t info_{};
  AlignedFloats packed_, workspace_;
};

std::vector<std::unique_ptr<Attempt>> attemptsFor(const taccConvDesc_t& desc) {
  std::vector<std::unique_ptr<Attempt>> attempts;
  const std::vector<std::string> listed = CLI::detail::split(taccConvAlgorithms(), ',');
  std::string reason;
  for (std::string name : std::set<std::string>(listed.begin(), listed.end())) {
    name = CLI::detail::trim(name);
    try {
      attempts.push_back(std::make_unique<Attempt>(desc, name));
    } catch (const std::runtime_error& error) {
      reason = error.what();  // it does not serve this one
    }
  }
  if (attempts.empty()) throw std::runtime_error(reason);
  const auto predicted = [](const auto& attempt) { return attempt->info().predictedSeconds; };
  const double least = predicted(*std::min_element(
      attempts.begin(), attempts.end(), [&](const auto& a, const auto& b) { return predicted(a) < predicted(b); }));
  std::erase_if(attempts, [&](const auto& attempt) { return predicted(attempt) > farByModel * least; });
  return attempts;
}

double secondsOf(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr const char* passNames[] = {"forward", "backward-data", "backward-weights"};
constexpr const char* layoutNames[] = {"nchw16c", "nchw", "nhwc"};

std::string layerText(const TunedConv& tuned) {
  const taccConvDesc_t& d = tuned.desc;
  std::string text = fmt::format(
      "\n[[layer]]\npass = \"{}\"\ninput = [{}, {}, {}, {}]\noutput_channels = {}\nkernel = [{}, {}]\nstride = [{}, "
      "{}]\n"
      "pad = [{}, {}]\ndilation = [{}, {}]\ngroups = {}\nlayout = \"{}\"\ntype = \"{}\"\nwinograd = {}\nworkers = {}\n"
      "algorithm = \"{}\"\nmicroseconds = {{ ",
      passNames[d.pass], d.batch, d.inChannels, d.height, d.width, d.outChannels, d.kernelHeight, d.kernelWidth,
      d.strideHeight, d.strideWidth, d.padHeight, d.padWidth, d.dilationHeight, d.dilationWidth, d.groups,
      layoutNames[d.inputLayout], d.activationType == taccBfloat16 ? "bfloat16" : "float32", d.winograd, d.maxWorkers,
      tuned.candidates.front().algorithm);
  for (const ConvCandidate& candidate : tuned.candidates) {
    text += fmt::format("{}{} = {:.1f}", &candidate == tuned.candidates.data() ? "" : ", ", candidate.algorithm,
                        candidate.seconds * 1e6);
  }
  return text + " }\n";
}

/// `text` as TOML's basic string, without its quotation marks.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

struct Options {
  std::vector<std::string> networks;
  std::vector<int> batches = {1};
  std::vector<std::string> passes = {"forward", "backward-data", "backward-weights"};
  std::string layer, file = "conv_tuning.toml";
  int threads = 1;
  double seconds = 0.3;
  bool winograd = false;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Measures which algorithms are the fastest for the convolutions of networks on this CPU, for "
      "taccConvLoadTuning.",
      "tacc_tune conv");
  app.add_option("--net", options.networks, tools::networkNames() + ", or a file of layers")
      ->delimiter(',')
      ->required();
  app.add_option("--batch", options.batches, "images, several with commas (1)")
      ->delimiter(',')
      ->check(tools::isPositive);
  app.add_option("--pass", options.passes, "forward, backward-data, backward-weights, several with commas (all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"forward", "backward-data", "backward-weights"}));
  app.add_option("--layer", options.layer, "only layers whose name contains this");
  app.add_option("--threads", options.threads, "threads (1)")->check(tools::isPositive);
  app.add_option("--seconds", options.seconds, "for one layer and pass (0.3)")->check(tools::isPositive);
  app.add_flag("--winograd", options.winograd, "allow Winograd's convolutions: for plans that allow them");
  app.add_option("--out", options.file, "the file to write (conv_tuning.toml)");
  tools::parseCommandLine(app, "tacc_tune conv", argc, argv, [&] {
#ifndef TACC_TUNE_OPENMP
    if (options.threads > 1)
      throw std::invalid_argument("--threads needs OpenMP, which was not there when this was built");
#endif
  });
  return options;
}

}  // namespace

TunedConv measureConv(const taccConvDesc_t& desc, double seconds, const taccExecutor_t& executor) {
  auto attempts = attemptsFor(desc);
  const taccConvInfo_t& info = attempts.front()->info();
  AlignedFloats input = someNumbers(info.inputBytes), output = someNumbers(info.outputBytes);
  AlignedFloats weights = someNumbers(info.weightBytes),
                bias = someNumbers(sizeof(float) * static_cast<std::size_t>(desc.outChannels));
  AlignedFloats result(std::max({info.inputBytes, info.outputBytes, info.weightBytes}) / sizeof(float) + 1);
  const taccConvBuffers_t buffers{input.data(),  nullptr,       output.data(), bias.data(),
                                  output.data(), result.data(), nullptr,       0};
  std::vector<tools::Timed> timed;
  std::vector<double> firsts;
  for (const auto& attempt : attempts) {
    attempt->prepare(weights.data());
    timed.push_back({[&buffers, &executor, run = attempt.get()] { run->run(buffers, executor); }});
    firsts.push_back(secondsOf(timed.back().run));
  }
  const double limit = farMeasured * *std::min_element(firsts.begin(), firsts.end());
  for (std::size_t i = attempts.size(); i-- > 0;) {
    if (firsts[i] <= limit) continue;
    attempts.erase(attempts.begin() + static_cast<std::ptrdiff_t>(i));
    timed.erase(timed.begin() + static_cast<std::ptrdiff_t>(i));
  }
  tools::timeInTurn(timed, seconds, false);
  TunedConv tuned{desc, {}};
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    tuned.candidates.push_back({attempts[i]->algorithm(), attempts[i]->info().kernel, timed[i].seconds});
  }
  std::sort(tuned.candidates.begin(), tuned.candidates.end(),
            [](const ConvCandidate& a, const ConvCandidate& b) { return a.seconds < b.seconds; });
  return tuned;
}

std::string tuningText(const std::vector<TunedConv>& tuned) {
  const char* isa = taccComputeIsa();
  if (isa == nullptr) throw std::runtime_error(taccGetLastError(nullptr));
  std::string text = fmt::format(
      "# Which algorithm was the fastest for each convolution, by tacc_tune conv; for taccConvLoadTuning.\n"
      "format = 1\ncpu = \"{}\"\nisa = \"{}\"\n",
      escaped(taccComputeCpu()), isa);
  for (const TunedConv& layer : tuned) text += layerText(layer);
  return text;
}

int tuneConv(int argc, char** argv) {
  Options options = parse(argc, argv);
  tools::requireWritable(options.file);
  taccExecutor_t executor = *taccSerialExecutor();
#ifdef TACC_TUNE_OPENMP
  if (options.threads > 1) executor = taccOpenMpExecutor(&options.threads);
#endif
  std::vector<TunedConv> tuned;
  std::set<std::string> seen;  // networks have layers in common, and a file has each once
  for (const std::string& network : options.networks) {
    for (const tools::Layer& layer : tools::findNetwork(network).layers) {
      if (layer.name.find(options.layer) == std::string::npos) continue;
      for (const taccConvPass_t pass : {taccConvForward, taccConvBackwardData, taccConvBackwardWeights}) {
        const std::string name = passNames[pass];
        if (std::find(options.passes.begin(), options.passes.end(), name) == options.passes.end()) continue;
        if (pass == taccConvBackwardData && layer.inChannels <= 3) continue;
        for (const int batch : options.batches) {
          const taccConvDesc_t desc = layer.describe(pass, batch, options.threads, options.winograd);
          TunedConv probe{desc, {{"", "", 0}}};
          if (!seen.insert(layerText(probe)).second) continue;
          tuned.push_back(measureConv(desc, options.seconds, executor));
          fmt::print("{:10} {:13} {:16} {:>3}", network, layer.name, name, batch);
          for (const ConvCandidate& c : tuned.back().candidates) {
            fmt::print("  {} ({}) {:.1f} us", c.algorithm, c.kernel, c.seconds * 1e6);
          }
          fmt::print("\n");
        }
      }
    }
  }
  tools::writeOutput(options.file, tuningText(tuned));
  fmt::print("{} convolutions written to {}\n", tuned.size(), options.file);
  return 0;
}

}  // namespace tacc::tune
