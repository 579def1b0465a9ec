#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string_view>

#include "coordinator/reports.hpp"
#include "worker/element.hpp"

namespace tacc::bench {
namespace {

std::string processorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "CPU";
}

/// Columns after those of nccl-tests; `peer` and `bound` print one pair each.
std::string moreHeader(const Options& options, bool units) {
  std::string text;
  if (options.perCall) {
    for (const char* name : {"i_min", "i_max", "i_p99", "i_cv"})
      text += fmt::format("  {:>7}", !units ? name : std::string_view(name) == "i_cv" ? "(%)" : "(us)");
  }
  for (const std::string& peer : options.peers)
    text += units ? fmt::format("  {:>9}  {:>6}", "(us)", "") : fmt::format("  {:>9}  {:>6}", peer, "ratio");
  if (options.bound)
    text += units ? fmt::format("  {:>9}  {:>6}", "(us)", "(%)") : fmt::format("  {:>9}  {:>6}", "bound", "/time");
  return text;
}

/// A line for each that is not as usual.
std::string otherSettings(const Options& options, const std::vector<Member>& members) {
  std::string text;
  if (options.job) {
    std::set<std::string> hosts;
    for (const Member& member : members) hosts.insert(member.host);
    text += fmt::format("# one job of all ranks that {} started, on {} host{}\n", options.job->launcher, hosts.size(),
                        hosts.size() == 1 ? "" : "s");
  }
  if (options.streams > 0)
    text += fmt::format("# tacc's calls are given to {} stream{}, and the last ones of a block are waited for\n",
                        options.streams, options.streams == 1 ? "" : "s, each with a communicator");
  if (options.registers) text += "# tacc's buffers are registered\n";
  constexpr const char* averages[] = {"rank 0's", "mean", "least", "most"};
  if (options.average != Average::mean)
    text += fmt::format("# of the ranks' times the {} counts\n", averages[static_cast<int>(options.average)]);
  return text;
}

std::string body(const Row& row, const Outcome& outcome, bool checked) {
  return fmt::format("  {:>7}  {:>6}  {:>6}  {}", fitNumber(outcome.microseconds, 7),
                     fitNumber(row.algorithmBandwidth(outcome.microseconds), 6),
                     fitNumber(row.busBandwidth(outcome.microseconds), 6),
                     checked ? fmt::format("{:6g}", static_cast<double>(outcome.wrong)) : "   N/A");
}

}  // namespace

std::string fitNumber(double value, int width) {
  int digits = 0;
  for (double limit = 1; value >= limit; limit *= 10) ++digits;
  if (digits < width - 2) return fmt::format("{:{}.2f}", value, width);
  if (digits < width - 1) return fmt::format("{:{}.1f}", value, width);
  if (digits < width + 1) return fmt::format("{:{}.0f}", value, width);
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

std::string tableHeader(const Options& options, const std::vector<Member>& members, int libraryVersion) {
  const tools::SizeRange& sizes = options.sizes;
  std::string text = fmt::format("# tacc_bench version {}.{}.{} tacc-headers={} tacc-library={}\n", TACC_MAJOR,
                                 TACC_MINOR, TACC_PATCH, TACC_VERSION_CODE, libraryVersion);
  text += fmt::format("# Collective test starting: {}\n", options.collective->name);
  text += fmt::format(
      "# nThread {} nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} "
      "validation: {:d} graph: 0 unalign: 0\n",
      options.threads ? options.ranks : 1, sizes.first, sizes.last, sizes.factor > 1 ? sizes.factor : sizes.step,
      sizes.factor > 1 ? "factor" : "bytes", std::max(options.warmup, 0), options.iterations, options.aggregate,
      options.check);
  text += fmt::format("# ranks {} as {}, {} memory, median of {} repetitions{}\n", options.ranks,
                      options.threads ? "threads" : "processes", options.memoryName(), options.repetitions,
                      options.iterations == 0 ? "; iters 0: as many as take about a second per size" : "");
  text += otherSettings(options, members);
  if (options.cluster)
    text += fmt::format(
        "# virtual cluster {} (supernodes, hosts in each, Mbit/s of a host, of an uplink), ranks placed {}\n",
        options.cluster->text(), options.placement);
  if (options.load > 0) text += fmt::format("# {} other processes compute meanwhile\n", options.load);
  if (options.reference != "tacc")
    text += fmt::format("# the first columns are {}'s, and ratios compare with it\n", options.reference);
  text += "#\n# Using devices\n";
  const std::string processor = processorName();
  for (size_t rank = 0; rank < members.size(); ++rank)
    text += fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [{:04x}:{:02x}:{:02x}] {}\n", rank, 0,
                        members[rank].processId, members[rank].host, 0, 0, 0, 0, processor);
  const std::string blank = fmt::format("# {:10}  {:12}  {:8}  {:6}  {:6}", "", "", "", "", "");
  text += "#\n#\n" + blank + "           out-of-place                       in-place          \n";
  const std::string names = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", options.reportsCpuTime ? "cputime" : "time",
                                        "algbw", "busbw", "#wrong");
  const std::string units = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{} {}\n", "size", "count", "type", "redop", "root", names,
                      names, moreHeader(options, false));
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{} {}\n", "(B)", "(elements)", "", "", "", units, units,
                      moreHeader(options, true));
  return text;
}

std::string tableRow(const Options& options, const Row& row) {
  std::string text = fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:6}", row.bytes, row.count, row.typeLabel(),
                                 row.opLabel(), row.rootLabel());
  text += body(row, row.outOfPlace, options.check);
  text += row.inPlace ? body(row, *row.inPlace, options.check) : std::string(33, ' ');
  if (row.outOfPlace.calls) {
    const CallTimes& calls = *row.outOfPlace.calls;
    for (const double figure : {calls.least, calls.most, calls.percentile99, calls.variation})
      text += fmt::format("  {}", fitNumber(figure, 7));
  }
  const auto other = [&](const std::optional<Outcome>& outcome, auto figure) {
    if (!outcome) return fmt::format("  {:>9}  {:>6}", "N/A", "N/A");
    return fmt::format("  {:>9}  {:>6}", fitNumber(outcome->microseconds, 9), fitNumber(figure(*outcome), 6));
  };
  for (const PeerOutcome& peer : row.peers)
    text += other(peer.outcome, [&](const Outcome& outcome) { return row.ratio(outcome); });
  if (options.bound) text += other(row.bound, [&](const Outcome& outcome) { return 100 * row.ratio(outcome); });
  return text + '\n';
}

std::string tableFooter(const Options& options, const std::vector<Row>& rows) {
  int64_t wrong = 0;
  double bandwidth = 0;
  size_t figures = 0;
  for (const Row& row : rows) {
    wrong += row.wrong();
    for (const Outcome* outcome : {&row.outOfPlace, row.inPlace ? &*row.inPlace : nullptr})
      if (outcome != nullptr) {
        bandwidth += row.busBandwidth(outcome->microseconds);
        ++figures;
      }
  }
  return fmt::format("# {:<20} : {} {}\n# {:<20} : {:g} \n#\n# Collective test concluded: {}\n", "Out of bounds values",
                     wrong, wrong != 0 ? "FAILED" : "OK", "Avg bus bandwidth",
                     figures > 0 ? bandwidth / static_cast<double>(figures) : 0, options.collective->name);
}

}  // namespace tacc::bench
