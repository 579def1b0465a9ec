// Measures a network that nobody described: says which pairs of hosts are to measure next, and makes levels of what
// they found. Where the groups are known and only figures are missing, it measures those. It knows no transport; who
// has one runs the rounds:
//
//     ProbeSession session(hosts);
//     while (const auto round = session.next()) {
//       // every host that is in a pair measures with its partner, all pairs of the round at the same time;
//       // then all hosts exchange the samples, so that all sessions go on alike
//       session.record(*round, samples);  // samples[i] of round->pairs[i]
//     }
//     Topology topology = session.topology(names);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "topology/model/topology.hpp"
#include "topology/probe/message_lengths.hpp"
#include "topology/probe/probe_matrix.hpp"
#include "topology/probe/shared_groups.hpp"

namespace tacc {

/// survey: all pairs at once, latency first, then both directions loaded: who shares an uplink is slower, and so is a
/// host whose own link is. alone: the
/// pairs' own latency and bandwidth, nobody else sends. outward: only bandwidth, only from a to b: the group's uplink
/// is full. The better of two rounds counts, of alone and outward.
enum class ProbeKind : std::uint8_t { survey, alone, outward };

/// Pairs are disjoint: no host is in two of them.
struct ProbeRound {
  ProbeKind kind = ProbeKind::survey;
  std::vector<ProbePair> pairs;
  std::vector<std::size_t> bytes = {};  // of each pair's message
  std::size_t ofGroup = 0;  // outward: hosts of the group that sends, which may be more than can send at once
};

struct ProbeLimits {
  std::uint32_t fullSurvey = 64;     // up to this number of hosts every pair is measured
  std::uint32_t repeats = 4;         // of the full survey, each time with other pairs at once; the first warms up
  std::uint32_t sampledRounds = 48;  // of larger networks, beside those that follow
  std::uint32_t askedRounds = 512;   // of larger networks: between groups that have not met yet, at most
  std::uint32_t alonePairs = 8;      // of each level
  std::uint32_t outwardGroups = 8;   // of each level
  std::uint32_t insideRounds = 3;    // between hosts of one group, where the groups are known
};

/// All sessions that are given the same samples ask for the same rounds and find the same topology.
class ProbeSession {
 public:
  explicit ProbeSession(std::uint32_t hosts, ProbeLimits limits = {}, ProbeSpeeds speeds = {});
  /// For the figures of a topology; the hosts are those of `places` in it.
  ProbeSession(const Topology& known, const std::vector<std::uint32_t>& places, ProbeLimits limits = {},
               ProbeSpeeds speeds = {});

  /// The next round; nothing when all is known. Must be followed by record().
  std::optional<ProbeRound> next();

  /// One sample for each pair of the round.
  void record(const ProbeRound& round, std::span<const ProbeSample> samples);

  /// With what has been recorded so far. `names`: of the hosts, by number.
  Topology topology(const std::vector<std::string>& names) const;

  /// The known topology with what nobody had said: latencies, bandwidths, uplinks, links of hosts.
  Topology complete(const Topology& known, const std::vector<std::uint32_t>& places) const;

  /// For measurements from elsewhere: a pair's sample, alone or among others; the sum of what hosts of a group of
  /// `ofGroup` hosts sent outward at once.
  void addPair(ProbePair pair, ProbeSample sample, bool alone);
  void addOutward(std::vector<std::uint32_t> members, double bytesPerSecond, std::size_t ofGroup);

 private:
  struct Outward {
    std::vector<std::uint32_t> members;
    double bytesPerSecond;
    std::size_t ofGroup;  // hosts of the whole group
  };

  std::optional<ProbeRound> nextRound();
  ProbeRound surveyRound() const;
  std::optional<ProbeRound> askingRound();
  void planInside();
  /// Those of the hosts whose own links are not known to be slow.
  std::vector<std::uint32_t> fastOf(std::vector<std::uint32_t> hosts) const;
  /// How many times as much the usual host's link carries as that of the slower of these, if it is known to be slow;
  /// else 1.
  double slownessOf(ProbePair pair) const;
  void planAlone();
  void planOutward();
  void planTwice(const ProbeRound& round);
  /// What a group sent outward, and by how many of its hosts at once; nothing if it was not measured.
  std::optional<double> outwardOf(const std::vector<std::uint32_t>& groupOf, std::uint32_t group,
                                  std::size_t* senders) const;
  /// What was measured of a level.
  struct LevelFigures {
    std::optional<double> alpha, bandwidth;
    std::vector<std::optional<double>> uplinks;  // of its groups
  };
  /// The figures of each of these levels and of the root.
  std::vector<LevelFigures> figuresOf(const std::vector<std::vector<std::uint32_t>>& levels) const;
  /// The uplinks of a level: what the rates tell; where a group was no limit, as much as its parts can send; where
  /// others were that limit first, as other groups of the level, and what was seen to leave it at least.
  void settleUplinks(const std::vector<std::vector<std::uint32_t>>& levels, std::size_t level,
                     std::vector<LevelFigures>& figures) const;
  /// Bytes/s that each host's own link carries; nothing for a host that was not measured.
  std::vector<std::optional<double>> hostLinks(const std::vector<std::vector<std::uint32_t>>& levels) const;
  bool matters(const std::vector<std::vector<std::uint32_t>>& levels, std::size_t level) const;
  /// Whether all pairs were measured, and who sent at the same time is known: then groups are found by what they share.
  bool knowsRounds() const noexcept { return !surveyRounds_.empty(); }
  void findLevels();
  /// What the rates of all rounds tell of the uplinks of the groups that were found so; 0 where they are no limit.
  std::map<HostSet, double> sharedUplinks() const;

  std::uint32_t hosts_;
  ProbeLimits limits_;
  MessageLengths lengths_;
  std::uint32_t surveyed_ = 0, asked_ = 0;
  bool isPlanned_ = false;
  std::vector<ProbeRound> planned_;  // what follows the survey; the next is the last
  std::vector<std::vector<std::uint32_t>> levels_;
  ProbeMatrix matrix_;
  std::map<ProbePair, ProbeSample> alone_;            // of each pair the best
  std::map<ProbePair, std::vector<double>> streams_;  // what each pair got alone, every time
  std::vector<Outward> outward_;
  std::vector<MeasuredRound> surveyRounds_, outwardRounds_;
  SharedLinks shared_;  // groups that were found by what they share
};

}  // namespace tacc
