#include "comm/cluster/tuning_agreement.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "algorithms/registry.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text_file.hpp"
#include "selection/tuning/tuning_file.hpp"
#include "topology/model/digest.hpp"

namespace tacc {
namespace {

constexpr std::string_view noFile = "none";

/// What one host has, for comparing.
struct View {
  std::uint64_t digest;
  bool looks, isThere, isNamed;
  std::array<char, 160> path;

  /// Not to be trusted to have an end where it came from another rank.
  std::string text() const { return {path.begin(), std::ranges::find(path, '\0')}; }
};

View viewOf(const std::optional<TuningText>& found) {
  View view{};
  view.looks = true;
  if (!found) return view;
  Digest digest;
  digest.add(found->text);
  view.digest = digest.value();
  view.isThere = true;
  view.isNamed = found->isNamed;
  std::copy_n(found->path.begin(), std::min(found->path.size(), view.path.size() - 1), view.path.begin());
  return view;
}

std::string describe(const View& view) {
  return view.isThere ? fmt::format("{} (digest {:016x})", view.text(), view.digest) : "no tuning file";
}

/// The first rank whose file is another one than rank 0's; 0: there is none.
std::size_t otherThanFirst(const std::vector<View>& views) {
  for (std::size_t rank = 1; rank < views.size(); ++rank)
    if (views[rank].looks && (views[rank].isThere != views[0].isThere || views[rank].digest != views[0].digest))
      return rank;
  return 0;
}

/// A topology that is measured may have groups one time and none the next: then what needs them is left out.
void removeUseless(Tuning& tuning, const TuningUse& use) {
  for (TunedCollective& measured : tuning.collectives)
    std::erase_if(measured.sizes, [&](const TunedSize& size) {
      const Algorithm* algorithm = findAlgorithm(size.algorithm);
      const PlanRequest request = use.requestOf(measured.collective);
      if (algorithm == nullptr || algorithm->serves(request)) return false;
      if (use.here.isMeasured && algorithm->looksAtLayout) return true;
      fail(taccInvalidUsage, "{}:{}, [{}]: {} does not serve calls of {} ranks here; measure again with tacc_tune",
           tuning.origin, size.line, nameOf(measured.collective), size.algorithm, request.ranks);
    });
}

}  // namespace

std::optional<TuningText> lookForTuning(const Environment& environment, const Surroundings& here) {
  const std::string& named = environment.tuningFile;
  if (named == noFile) return std::nullopt;
  if (!named.empty()) return TuningText{named, readText(named), true};
  const std::string home = here.variable("HOME"), config = here.variable("XDG_CONFIG_HOME");
  std::vector<std::string> paths;
  if (!config.empty())
    paths.push_back(here.root + config + "/tacc/tune.toml");
  else if (!home.empty())
    paths.push_back(here.root + home + "/.config/tacc/tune.toml");
  paths.push_back(here.root + "/etc/tacc/tune.toml");
  for (const std::string& path : paths)
    if (auto text = readTextIfThere(path)) return TuningText{path, *std::move(text), false};
  return std::nullopt;
}

TuningUse tuningUseOfNode(int ranks, bool isPart) {
  CostMachine machine;
  machine.levels.push_back({.begins = {0}});
  return {{ownVersion(), "shm", layoutDigest(machine), false, {ranks}, {0, 0}},
          [ranks](Collective collective) {
            return PlanRequest{collective, ranks, 0};
          },
          isPart};
}

std::shared_ptr<const Tuning> judgeTuning(const TuningText& found, const TuningUse& use, int rank) {
  try {
    auto tuning = std::make_shared<Tuning>(tuningFromToml(found.text, found.path));
    const std::string difference = differenceOf(tuning->place, use.here);
    if (!difference.empty())
      fail(taccInvalidUsage, "the tuning file {} is not for this communicator: {}; measure again with tacc_tune{}",
           found.path, difference, found.isNamed ? ", or unset TACC_TUNE_FILE" : "");
    removeUseless(*tuning, use);
    return tuning;
  } catch (const Error& error) {
    if (found.isNamed && !use.isPart) throw;
    // What does not concern a part is nothing to warn of.
    if (rank == 0) log(use.isPart ? LogLevel::info : LogLevel::warn, rank, "not used: {}", error.what());
    return nullptr;
  }
}

std::shared_ptr<const Tuning> agreeOnTuning(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, int rank,
                                            const Environment& environment, const TuningUse& use) {
  const std::vector<int> leaders = HostMap(who).lane(0);
  std::optional<TuningText> found;
  View mine{};
  if (std::ranges::find(leaders, rank) != leaders.end()) {
    found = lookForTuning(environment, Surroundings::here());
    mine = viewOf(found);
  }
  const std::vector<View> views = bootstrap.gatherValues(mine);
  if (const std::size_t other = otherThanFirst(views); other != 0) {
    const std::string difference =
        fmt::format("hosts have different tuning files: rank 0 ({}) has {}, rank {} ({}) has {}; give all the same",
                    who[0].describe(), describe(views[0]), other, who[other].describe(), describe(views[other]));
    if (std::ranges::any_of(views, &View::isNamed)) fail(taccInvalidUsage, "{}", difference);
    if (rank == 0) log(LogLevel::warn, rank, "none is used: {}", difference);
    return nullptr;
  }
  if (!views[0].isThere) return nullptr;
  const auto text = bootstrap.broadcast(found ? std::as_bytes(std::span(found->text)) : std::span<const std::byte>());
  return judgeTuning({views[0].text(), {reinterpret_cast<const char*>(text.data()), text.size()}, views[0].isNamed},
                     use, rank);
}

}  // namespace tacc
