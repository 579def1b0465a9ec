#include "comm/cluster/transport_choice.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/transports.hpp"

namespace tacc {
namespace {

struct KindOverTcp {
  std::string_view name;
  int place;
  bool keepsPorts;
};
#define TACC_PLACE(name, functions, isBuilt, place, keepsPorts, ...) KindOverTcp{#name, place, keepsPorts},
/// In the order in which they are tried where no host has a card.
constexpr auto overTcp = [] {
  std::array kinds = {TACC_TRANSPORTS(TACC_PLACE)};
  std::ranges::sort(kinds, {}, &KindOverTcp::place);
  return kinds;
}();
#undef TACC_PLACE

/// The only one that encrypts.
constexpr std::string_view encryptedName = "tcp";

/// What a rank says of one kind of transport.
struct Offer {
  bool works;
  bool hasFabric;
  std::array<char, 200> problem;  // else
};

/// What a rank says of its host before any is tried.
struct HostOffer {
  bool hasCard;
  bool hasPortRange;
};

std::unique_ptr<NetworkTransport> tryTransport(const NetworkTransportKind& kind, NetworkOptions options,
                                               PluginTable* plugin, Offer& offer) {
  std::string problem = fmt::format("this build of tacc lacks it; it needs {}", kind.library);
  try {
    if (kind.make != nullptr) {
      if (plugin != nullptr) options.plugin = &plugin->table();
      auto made = kind.make(options);
      if (plugin != nullptr && kind.name == "mpi") plugin->take();
      offer.works = true;
      offer.hasFabric = made->hasFabric();
      return made;
    }
  } catch (const Error& error) {
    problem = error.what();
  }
  const std::size_t length = std::min(problem.size(), offer.problem.size() - 1);
  std::copy_n(problem.begin(), length, offer.problem.begin());
  return nullptr;
}

/// One choice under way: tries kinds, on all ranks alike, and keeps those that work.
class Choice {
 public:
  Choice(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, const NetworkOptions& options, PluginTable* plugin)
      : bootstrap_(bootstrap), who_(who), options_(options), plugin_(plugin) {}

  /// Whether it works on all ranks, and, if asked for, has found a fabric on all.
  bool tryKind(std::string_view name, bool needsFabric) {
    if (const auto known = made_.find(name); known != made_.end()) return known->second != nullptr && !needsFabric;
    const auto kinds = networkTransports();
    const auto kind = std::ranges::find(kinds, name, &NetworkTransportKind::name);
    if (kind == kinds.end()) return false;
    Offer mine{};
    auto transport = tryTransport(*kind, options_, plugin_, mine);
    const auto offers = bootstrap_.gatherValues(mine);
    const auto lacking = std::ranges::find(offers, false, &Offer::works);
    const bool works = lacking == offers.end();
    made_[kind->name] = works ? std::move(transport) : nullptr;
    if (works) return !needsFabric || std::ranges::all_of(offers, &Offer::hasFabric);
    const auto rank = static_cast<std::size_t>(lacking - offers.begin());
    problems_ += fmt::format("{}{} (rank {}, {}: {})", problems_.empty() ? "" : ", ", kind->name, rank,
                             who_[rank].describe(), lacking->problem.data());
    return false;
  }

  ChosenTransport take(std::string_view name) { return {std::move(made_[name]), std::string(name)}; }
  const std::string& problems() const noexcept { return problems_; }

 private:
  Bootstrap& bootstrap_;
  const std::vector<RankIdentity>& who_;
  const NetworkOptions& options_;
  PluginTable* plugin_;
  std::map<std::string_view, std::unique_ptr<NetworkTransport>> made_;  // null: does not work everywhere
  std::string problems_;
};

/// Other threads of the ranks may be sharing the same connections.
constexpr int numbersTried = 16;

}  // namespace

ChosenTransport shareTransport(Bootstrap& bootstrap, const LentConnections* lent, const std::string& settings,
                               const NetworkOptions& options) {
  if (lent == nullptr) return {};
  const bool fits = lent->transport != nullptr && lent->settings == settings;
  for (int turn = 0; turn < numbersTried; ++turn) {
    const auto offers = bootstrap.gatherValues(fits ? lent->transport->nextChannel(lent->ranks) : 0);
    if (std::ranges::find(offers, 0U) != offers.end()) return {};
    auto made =
        lent->transport->openChannel(std::ranges::max(offers), options.rank, lent->ranks, options.silenceSeconds);
    // Nobody sends before all have opened theirs.
    const auto all = bootstrap.gatherValues(static_cast<char>(made != nullptr));
    if (std::ranges::find(all, char{0}) == all.end()) return {std::move(made), lent->name};
  }
  return {};
}

ChosenTransport chooseTransport(Bootstrap& bootstrap, const std::vector<RankIdentity>& who,
                                const NetworkOptions& options, PluginTable* plugin, const std::string& forced,
                                bool hasPortRange) {
  if (options.encrypts && !forced.empty() && forced != encryptedName)
    fail(taccInvalidUsage,
         "TACC_ENCRYPTION=on encrypts what tacc's own TCP carries, and TACC_TRANSPORT={} asks for another transport: "
         "leave TACC_TRANSPORT out or set it to {}, or set TACC_ENCRYPTION=off",
         forced, encryptedName);
  Choice choice(bootstrap, who, options, plugin);
  const std::string_view only = options.encrypts ? encryptedName : std::string_view(forced);
  if (!only.empty()) {
    if (choice.tryKind(only, false)) return choice.take(only);
  } else {
    // Loading the libraries takes longer than all the rest of init, so not where they cannot win.
    const auto hosts = bootstrap.gatherValues(HostOffer{hasFabricDevice(), hasPortRange});
    if (std::ranges::any_of(hosts, &HostOffer::hasCard)) {
      for (const NetworkTransportKind& kind : networkTransports())
        if (choice.tryKind(kind.name, true)) return choice.take(kind.name);
    }
    // Where a firewall lets only some ports through, messages at others would be lost without a word.
    const bool keepsPorts = std::ranges::any_of(hosts, &HostOffer::hasPortRange);
    for (const KindOverTcp& kind : overTcp)
      if ((kind.keepsPorts || !keepsPorts) && choice.tryKind(kind.name, false)) return choice.take(kind.name);
  }
  if (choice.problems().empty())
    fail(taccInvalidUsage, "TACC_TRANSPORT={}: tacc has no transport of that name here", forced);
  fail(taccSystemError, "no transport works between the hosts of all ranks: {}; tacc_info shows what a host has",
       choice.problems());
}

}  // namespace tacc
