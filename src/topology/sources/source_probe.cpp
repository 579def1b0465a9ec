// The source "probe". A file of it has one measurement a line:
//
//     pair HOST HOST LATENCY BANDWIDTH     while other pairs measured too; "-" for what was not measured
//     alone HOST HOST LATENCY BANDWIDTH    while nobody else sent
//     outward HOSTS BANDWIDTH              the sum of what these hosts, a whole group, sent outside at once
#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"
#include "topology/model/units.hpp"
#include "topology/probe/probe_session.hpp"
#include "topology/sources/sources.hpp"

namespace tacc {
namespace {

constexpr std::size_t mostProbedHosts = 65536;

class ProbeReader {
 public:
  ProbeReader(std::string_view text, const std::string& origin) : origin_(origin) {
    const std::vector<std::string_view> lines = linesOf(text);
    for (const std::string_view line : lines) {
      ++number_;
      collect(wordsOf(line.substr(0, line.find('#'))));
    }
    if (names_.empty()) fail(taccInvalidArgument, "{}: there is no measurement", origin);
  }

  Topology topology() {
    ProbeSession session(static_cast<std::uint32_t>(names_.size()));
    for (const Pair& pair : pairs_) session.addPair(pair.hosts, pair.sample, pair.alone);
    for (const Outward& outward : outward_) {
      session.addOutward(outward.members, outward.bytesPerSecond, outward.members.size());
    }
    return session.topology(names_);
  }

 private:
  struct Pair {
    ProbePair hosts;
    ProbeSample sample;
    bool alone;
  };
  struct Outward {
    std::vector<std::uint32_t> members;
    double bytesPerSecond;
  };

  [[noreturn]] void reject() const {
    fail(taccInvalidArgument,
         "{}:{}: a measurement is \"pair a b 1.5us 12.5GB/s\", \"alone a b 1.5us 12.5GB/s\" or \"outward a,b 25GB/s\"",
         origin_, number_);
  }

  std::uint32_t hostOf(const std::string& name) {
    const auto [entry, isNew] = numberOf_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (isNew) names_.push_back(name);
    if (names_.size() > mostProbedHosts)
      fail(taccInvalidArgument, "{}:{}: more than {} hosts", origin_, number_, mostProbedHosts);
    return entry->second;
  }

  double figure(std::string_view text, std::optional<double> (*parse)(std::string_view)) const {
    if (text == "-") return 0;
    const std::optional<double> value = parse(text);
    if (!value) reject();
    return *value;
  }

  void collect(const std::vector<std::string_view>& words) {
    if (words.empty()) return;
    if (words.size() == 5 && (words[0] == "pair" || words[0] == "alone")) {
      const ProbePair hosts{hostOf(std::string(words[1])), hostOf(std::string(words[2]))};
      if (hosts.a == hosts.b) reject();
      pairs_.push_back(
          {hosts, {figure(words[3], parseLatency), figure(words[4], parseBandwidth)}, words[0] == "alone"});
    } else if (words.size() == 3 && words[0] == "outward") {
      Outward& outward = outward_.emplace_back(Outward{{}, figure(words[2], parseBandwidth)});
      members_ += mostProbedHosts / 64;
      for (const std::string& host : expandHosts(words[1], mostProbedHosts)) outward.members.push_back(hostOf(host));
      members_ += outward.members.size();
      if (members_ > 16 * mostProbedHosts) fail(taccInvalidArgument, "{}:{}: too many outward lines", origin_, number_);
    } else {
      reject();
    }
  }

  const std::string& origin_;
  std::size_t number_ = 0;
  std::size_t members_ = 0;  // work of the outward lines so far, in hosts
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t> numberOf_;
  std::vector<Pair> pairs_;
  std::vector<Outward> outward_;
};

bool recognisesProbe(std::string_view text) {
  for (const std::string_view line : linesOf(text.substr(0, 4096))) {
    const std::vector<std::string_view> words = wordsOf(line);
    if (words.empty() || words.front().starts_with('#')) continue;
    return (words.size() == 5 && (words[0] == "pair" || words[0] == "alone")) ||
           (words.size() == 3 && words[0] == "outward");
  }
  return false;
}

Topology readProbeFile(std::string_view text, const std::string& origin) {
  return ProbeReader(text, origin).topology();
}

}  // namespace

TopologySource probeSource() {
  return {.name = {},
          .summary = "latencies and bandwidths that were measured between pairs of hosts",
          .library = "",
          .recognises = recognisesProbe,
          .read = readProbeFile,
          .look = nullptr};
}

}  // namespace tacc
