// tacc_plan: shows the plans of the algorithms and proves plans in files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "algorithms/picture.hpp"
#include "algorithms/registry.hpp"
#include "algorithms/text.hpp"
#include "algorithms/verifier.hpp"
#include "core/error.hpp"
#include "support/command_line.hpp"
#include "support/output.hpp"

namespace {

using namespace tacc;

void listAlgorithms() {
  for (const Algorithm& algorithm : algorithms()) {
    std::string collectives;
    for (int i = 0; i < collectiveCount; ++i) {
      const auto collective = static_cast<Collective>(i);
      PlanRequest request{collective, 8, 0};
      const char* needs = "";
      if (!algorithm.serves(request)) {
        request.groups = equalGroups(8, {2, 2});
        needs = " (with --groups)";
      }
      if (!algorithm.serves(request)) {
        request.groups.clear();
        request.narrow = {7};
        needs = " (with --narrow)";
      }
      if (!algorithm.serves(request)) continue;
      if (!request.hasLayout()) {
        request.ranks = 7;
        if (!algorithm.serves(request)) needs = " (not for all numbers of ranks)";
      }
      fmt::format_to(std::back_inserter(collectives), "{}{}{}", collectives.empty() ? "" : ", ", nameOf(collective),
                     needs);
    }
    fmt::print("{}\n  {}\n  serves: {}\n  source: {}\n", algorithm.name, algorithm.summary, collectives,
               algorithm.source);
  }
}

void printCertificate(const Plan& plan) {
  const Certificate certificate = verify(plan);
  const Certificate inPlace = verify(plan, true);
  const bool split = partitionOf(plan.request.collective) == Partition::split;
  const std::string unit = split ? fmt::format(" of {} in the vector", plan.blocks) : std::string();
  fmt::print("# proven, in place too: {} {}, {} ranks, {} rounds\n", plan.algorithm, nameOf(plan.request.collective),
             plan.request.ranks, plan.rounds);
  fmt::print("# steps (longest chain of messages): {}; messages: {}\n", certificate.longestChain, certificate.messages);
  fmt::print("# blocks sent by a rank: at most {}{}; received: {}\n", certificate.maxBlocksSent, unit,
             certificate.maxBlocksReceived);
  fmt::print("# messages to copy when sending by reference: {}; in place: {}\n", certificate.overwrittenMessages,
             inPlace.overwrittenMessages);
  if (certificate.reductionOrder != 0) fmt::print("# order of reduction: {:016x}\n", certificate.reductionOrder);
}

struct ShowOptions {
  std::string collective, algorithm, picture;
  PlanRequest request;
  std::vector<int> groups;
};

void checkLayout(PlanRequest& request, const std::vector<int>& groups) {
  std::int64_t size = 1;
  for (const int level : groups) size *= level;
  if (request.ranks % std::max<std::int64_t>(size, 1) != 0)
    fail(taccInvalidArgument, "--groups: {} ranks are not a multiple of the {} of an outermost group", request.ranks,
         size);
  request.groups = equalGroups(request.ranks, groups);
  if (!request.dimensions.empty() && !dimensionsFit(request))
    fail(taccInvalidArgument, "--dimensions: their product is not the number of ranks, {}", request.ranks);
  if (!narrowFit(request))
    fail(taccInvalidArgument, "--narrow: not ranks from 0 to {} in ascending order", request.ranks - 1);
}

void show(const ShowOptions& options) {
  tools::refuseDash(options.picture);
  const std::string &collectiveName = options.collective, &algorithmName = options.algorithm;
  PlanRequest request = options.request;
  request.collective = requireCollective(collectiveName);
  if (request.root >= request.ranks) {
    fail(taccInvalidArgument, "root {} is outside 0 to {}", request.root, request.ranks - 1);
  }
  checkLayout(request, options.groups);
  const Algorithm* algorithm = findAlgorithm(algorithmName);
  if (algorithm == nullptr) {
    fail(taccInvalidArgument, "there is no algorithm \"{}\"; see: tacc_plan list", algorithmName);
  }
  if (!algorithm->serves(request)) {
    fail(taccInvalidArgument, "{} does not serve {} on {} ranks; see: tacc_plan list", algorithmName, collectiveName,
         request.ranks);
  }
  const Plan plan = makePlan(*algorithm, request);
  if (!options.picture.empty()) {
    std::ofstream file(options.picture, std::ios::binary);
    file << toPicture(plan);
    if (!file.flush()) failErrno("{} cannot be written", options.picture);
  } else {
    fmt::print("{}", toText(plan));
  }
  printCertificate(plan);
}

void verifyFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) failErrno("{}: cannot be read", path);
  printCertificate(fromText(text));
}

}  // namespace

int main(int argc, char** argv) {
  tools::requireStandardOutput("tacc_plan");
  CLI::App app("Shows and proves plans of collectives.");
  app.require_subcommand(1);

  const CLI::App* listCommand = app.add_subcommand("list", "the algorithms, what they serve and where they come from");

  ShowOptions options;
  PlanRequest& request = options.request;
  CLI::App* showCommand = app.add_subcommand("show", "writes a plan as text, with what its proof found");
  showCommand->add_option("--collective", options.collective, "allreduce, broadcast, ...")->required();
  showCommand->add_option("--algorithm", options.algorithm, "a name from: tacc_plan list")->required();
  showCommand->add_option("--ranks", request.ranks, "number of ranks")->required()->check(CLI::Range(1, 4096));
  showCommand->add_option("--root", request.root, "root of a rooted collective")->check(CLI::Range(0, 4095));
  showCommand->add_option("--groups", options.groups, "nested groups: 4,2 for groups of 4 ranks, two of them in one")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  showCommand->add_option("--dimensions", request.dimensions, "sides of a torus, the last one fastest: 4,4")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  showCommand->add_option("--narrow", request.narrow, "ranks whose own links are narrow: 3,5")
      ->delimiter(',')
      ->check(CLI::Range(0, 4095));
  showCommand->add_option("--svg", options.picture, "writes a picture to this file instead of the text");

  std::string path;
  CLI::App* verifyCommand = app.add_subcommand("verify", "proves a plan in a file");
  verifyCommand->add_option("FILE", path, "what tacc_plan show wrote")->required();

  tools::parseCommandLine(app, "tacc_plan", argc, argv, [] {});
  try {
    if (showCommand->parsed()) show(options);
    if (verifyCommand->parsed()) verifyFile(path);
    if (listCommand->parsed()) listAlgorithms();
  } catch (const std::exception& error) {
    tools::complain("tacc_plan: {}\n", error.what());
    return 1;
  }
  return 0;
}
