#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compute/gemm_bench.hpp"
#include "compute/mean.hpp"
#include "coordinator/bars.hpp"

namespace tacc::bench {

using Json = nlohmann::ordered_json;

std::string gemmJson(const GemmReport& report) {
  Json json = {{"peak_gflops", report.peak * 1e-9}, {"results", Json::array()}};
  for (const GemmResult& r : report.results) {
    Json peers = Json::object();
    for (const auto& [name, peer] : r.peers) {
      peers[name] = {{"gflops", r.gflops(peer)},
                     {"ratio", peer.seconds / r.tacc.seconds},
                     {"implementation", peer.implementation},
                     {"wrong", peer.wrong}};
    }
    json["results"].push_back({{"m", r.shape.m},
                               {"n", r.shape.n},
                               {"k", r.shape.k},
                               {"batch", r.shape.batch},
                               {"transpose_a", r.shape.transposeA},
                               {"transpose_b", r.shape.transposeB},
                               {"threads", report.options.threads},
                               {"packs", report.options.packs},
                               {"isa", report.isa},
                               {"kernel", r.tacc.implementation},
                               {"seconds", r.tacc.seconds},
                               {"gflops", r.gflops(r.tacc)},
                               {"peak_fraction", r.shape.operations() / r.tacc.seconds / report.peak},
                               {"wrong", r.tacc.wrong},
                               {"peers", peers}});
  }
  return json.dump(2) + '\n';
}

std::string gemmLine(const GemmReport& report, const GemmResult& r) {
  const auto wrong = [](const GemmTime& time) {
    return time.wrong == 0 ? std::string() : fmt::format(" WRONG {}", time.wrong);
  };
  std::string line =
      fmt::format("{:>18} {:>4} {:7.1f} {:4.0f}% {:14}{}", r.shape.text(), r.shape.batch, r.gflops(r.tacc),
                  100 * r.shape.operations() / r.tacc.seconds / report.peak, r.tacc.implementation, wrong(r.tacc));
  for (const auto& [name, peer] : r.peers) {
    line += fmt::format(" {} {:.1f} x{:.2f} {}{}", name, r.gflops(peer), peer.seconds / r.tacc.seconds,
                        peer.implementation, wrong(peer));
  }
  return line + "\n";
}

std::string gemmSummary(const GemmReport& report) {
  Mean gflops;
  std::map<std::string, Mean> ratios;
  for (const GemmResult& r : report.results) {
    gflops.add(r.gflops(r.tacc));
    for (const auto& [name, peer] : r.peers) ratios[name].add(peer.seconds / r.tacc.seconds);
  }
  std::string text = fmt::format("geometric mean of {} shapes: {:.1f} GFLOP/s", gflops.count, gflops.value());
  for (const auto& [name, mean] : ratios) {
    text += fmt::format(", x{:.3f} of {} (least x{:.2f})", mean.value(), name, mean.least);
  }
  return text + '\n';
}

std::string gemmPlot(const GemmReport& report) {
  Bars bars{fmt::format("Products of matrices, {}, {} thread{}", report.isa, report.options.threads,
                        report.options.threads == 1 ? "" : "s"),
            "GFLOP/s (higher is better)",
            {"tacc"},
            {},
            report.peak * 1e-9,
            "multiply-adds alone"};
  for (const std::string& name : report.options.peers) bars.series.push_back(name);
  for (const GemmResult& r : report.results) {
    BarGroup group{r.shape.batch > 1 ? fmt::format("{} x {}", r.shape.batch, r.shape.text()) : r.shape.text(),
                   {r.gflops(r.tacc)}};
    for (const std::string& name : report.options.peers) group.values.push_back(r.gflops(r.peers.at(name)));
    bars.groups.push_back(group);
  }
  return drawBars(bars);
}

}  // namespace tacc::bench
