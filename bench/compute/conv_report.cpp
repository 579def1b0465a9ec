#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "compute/conv_bench.hpp"
#include "compute/mean.hpp"
#include "coordinator/bars.hpp"

namespace tacc::bench {
namespace {

using Json = nlohmann::ordered_json;

/// What makes layers of different networks the same.
std::string shapeOf(const tools::Layer& l) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", l.inChannels, l.height, l.width, l.outChannels, textOf(l.kernel),
                     textOf(l.stride), textOf(l.pad), l.groups, textOf(l.dilation));
}

Json jsonOf(const tools::BothWays& ways) {
  return ways.height == ways.width ? Json(ways.height) : Json{ways.height, ways.width};
}

}  // namespace

const char* passName(taccConvPass_t pass) {
  constexpr const char* names[] = {"forward", "backward-data", "backward-weights"};
  return names[pass];
}

std::string convJson(const ConvReport& report) {
  Json json = {{"peak_gflops", report.peak * 1e-9}, {"results", Json::array()}};
  for (const ConvResult& r : report.results) {
    Json peers = Json::object();
    for (const auto& [name, peer] : r.peers) {
      peers[name] = {{"gflops", r.operations / peer.seconds * 1e-9},
                     {"ratio", peer.seconds / r.seconds},
                     {"implementation", peer.implementation},
                     {"reorder_seconds", peer.reorderSeconds}};
    }
    Json candidates = Json::array();
    for (const ConvCandidate& candidate : r.candidates) {
      candidates.push_back(
          {{"peer", candidate.peer}, {"implementation", candidate.implementation}, {"seconds", candidate.seconds}});
      if (candidate.predictedSeconds > 0) candidates.back()["predicted_seconds"] = candidate.predictedSeconds;
    }
    const tools::Layer& l = r.layer;
    json["results"].push_back({{"net", r.network},
                               {"layer", r.layer.name},
                               {"pass", passName(r.pass)},
                               {"batch", r.batch},
                               {"threads", report.options.threads},
                               {"plain", report.options.plain},
                               {"nhwc", report.options.nhwc},
                               {"isa", report.isa},
                               {"kernel", r.kernel},
                               {"seconds", r.seconds},
                               {"reorder_seconds", r.reorderSeconds},
                               {"gflops", r.gflops()},
                               {"peak_fraction", r.operations / r.seconds / report.peak},
                               {"wrong", r.wrong},
                               {"shape",
                                {l.inChannels, l.height, l.width, l.outChannels, l.kernel.height, l.kernel.width,
                                 jsonOf(l.stride), jsonOf(l.pad), jsonOf(l.dilation), l.groups}},
                               {"peers", peers},
                               {"candidates", candidates}});
  }
  return json.dump(2) + '\n';
}

std::string convLine(const ConvReport& report, const ConvResult& r) {
  const tools::Layer& l = r.layer;
  std::string line = fmt::format(
      "{:10} {:13} {:>4}->{:<4} @{:<3} k{:<2} s{} {:>3} {:16} {:7.1f} {:4.0f}% {:5} {:24}", r.network, l.name,
      l.inChannels, l.outChannels, l.height, textOf(l.kernel), textOf(l.stride), r.batch, passName(r.pass), r.gflops(),
      100 * r.operations / r.seconds / report.peak, r.wrong == 0 ? "" : fmt::format("WRONG {}", r.wrong), r.kernel);
  for (const auto& [name, peer] : r.peers) {
    line += fmt::format(" {} {:.1f} x{:.2f} {}", name, r.operations / peer.seconds * 1e-9, peer.seconds / r.seconds,
                        peer.implementation);
  }
  return line + "\n";
}

namespace {

/// The numbers of images that were asked for; 0 stands for layers that bring their own.
std::vector<int> batchesOf(const ConvReport& report) {
  std::vector<int> batches = report.options.batches;
  if (report.options.drawn.count > 0) batches.push_back(0);
  return batches;
}

}  // namespace

std::string convSummary(const ConvReport& report) {
  std::string text;
  for (const taccConvPass_t pass : report.options.passes) {
    for (const int batch : batchesOf(report)) {
      Mean gflops;
      std::map<std::string, Mean> ratios;
      std::set<std::string> seen;
      for (const ConvResult& r : report.results) {
        if (r.pass != pass || (batch == 0 ? r.layer.batch == 0 : r.batch != batch || r.layer.batch != 0) ||
            !seen.insert(shapeOf(r.layer)).second)
          continue;
        gflops.add(r.gflops());
        for (const auto& [name, peer] : r.peers) {
          ratios[name].add(peer.seconds / r.seconds);
        }
      }
      if (gflops.count == 0) continue;
      text += fmt::format("{} batch {}, geometric mean of {} layers: {:.1f} GFLOP/s", passName(pass),
                          batch == 0 ? "as drawn" : std::to_string(batch), gflops.count, gflops.value());
      for (const auto& [name, mean] : ratios) {
        text += fmt::format(", x{:.3f} of {} (least x{:.2f}; {:.1f} % of the layers at x0.95 or above)", mean.value(),
                            name, mean.least, 100.0 * mean.from95 / mean.count);
      }
      text += '\n';
    }
  }
  return text;
}

std::string convPlot(const ConvReport& report) {
  Bars bars{fmt::format("Convolutions, {}, {} thread{}", report.isa, report.options.threads,
                        report.options.threads == 1 ? "" : "s"),
            "GFLOP/s (higher is better)",
            {"tacc"},
            {},
            report.peak * 1e-9,
            "multiply-adds alone"};
  for (const std::string& name : report.options.peers) bars.series.push_back(name);
  const bool isOneNetwork = report.options.networks.size() == 1;
  for (const ConvResult& r : report.results) {
    std::string label = isOneNetwork ? r.layer.name : r.network + " " + r.layer.name;
    if (report.options.passes.size() > 1) label += fmt::format(" {}", passName(r.pass));
    if (report.options.batches.size() > 1) label += fmt::format(" {}", r.batch);
    BarGroup group{label, {r.gflops()}};
    for (const std::string& name : report.options.peers) {
      const auto peer = r.peers.find(name);
      group.values.push_back(peer == r.peers.end() ? 0 : r.operations / peer->second.seconds * 1e-9);
    }
    bars.groups.push_back(group);
  }
  return drawBars(bars);
}

}  // namespace tacc::bench
