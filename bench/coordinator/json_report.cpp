#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "coordinator/reports.hpp"
#include "worker/element.hpp"

namespace tacc::bench {
namespace {

// Keeps the order in which the keys are written.
using Json = nlohmann::ordered_json;

Json compared(const Row& row, const std::optional<Outcome>& other) {
  if (!other) return nullptr;
  Json object = {{"time", other->microseconds}, {"ratio", row.ratio(*other)}};
  if (other->cpuSeconds > 0) object["cpu_seconds"] = other->cpuSeconds;
  return object;
}

Json calls(const CallTimes& times) {
  return {{"min", times.least},        {"avg", times.mean},         {"max", times.most},    {"p50", times.median},
          {"p90", times.percentile90}, {"p99", times.percentile99}, {"cv", times.variation}};
}

Json inPlace(const Options& options, const Row& row) {
  const Outcome& outcome = *row.inPlace;
  Json object = {{"time", outcome.microseconds},
                 {"alg_bw", row.algorithmBandwidth(outcome.microseconds)},
                 {"bus_bw", row.busBandwidth(outcome.microseconds)},
                 {"wrong", nullptr},
                 {"cpu_seconds", outcome.cpuSeconds}};
  if (options.check) object["wrong"] = outcome.wrong;
  if (outcome.calls) object["calls"] = calls(*outcome.calls);
  return object;
}

/// TACC_* as they are set; the secret is none of anybody's business.
Json environment() {
  Json all = Json::object();
  for (const char* const* entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with("TACC_")) continue;
    const std::string name(text.substr(0, equals));
    if (name != "TACC_JOB_SECRET") all[name] = text.substr(equals + 1);
  }
  return all;
}

const char* nameOf(Average average) {
  constexpr const char* names[] = {"rank 0", "mean", "least", "most"};
  return names[static_cast<int>(average)];
}

Json result(const Options& options, const Row& row) {
  const double time = row.outOfPlace.microseconds;
  Json object = {{"size", row.bytes},
                 {"count", row.count},
                 {"type", row.typeLabel()},
                 {"redop", row.opLabel()},
                 {"root", row.rootLabel()},
                 {"time", time},
                 {"alg_bw", row.algorithmBandwidth(time)},
                 {"bus_bw", row.busBandwidth(time)},
                 {"wrong", nullptr},
                 {"algorithm", row.outOfPlace.algorithm},
                 {"cpu_seconds", row.outOfPlace.cpuSeconds},
                 {"stolen", row.stolen},
                 {"peers", Json::object()}};
  if (options.check) object["wrong"] = row.outOfPlace.wrong + (row.inPlace ? row.inPlace->wrong : 0);
  if (row.outOfPlace.calls) object["calls"] = calls(*row.outOfPlace.calls);
  object["in_place"] = row.inPlace ? inPlace(options, row) : Json(nullptr);
  for (const PeerOutcome& peer : row.peers) object["peers"][peer.name] = compared(row, peer.outcome);
  if (row.bound) object["bound"] = compared(row, row.bound);
  return object;
}

}  // namespace

std::string jsonReport(const Options& options, const RunFacts& facts, const std::vector<Row>& rows) {
  Json report = {{"version", fmt::format("{}.{}.{}", TACC_MAJOR, TACC_MINOR, TACC_PATCH)},
                 {"library_version", facts.libraryVersion},
                 {"start_time", facts.begin},
                 {"end_time", facts.end},
                 {"arguments", options.arguments},
                 {"environment", environment()},
                 {"launcher", nullptr},
                 {"hosts", Json::array()},
                 {"collective", options.collective->name},
                 {"ranks", options.ranks},
                 {"load", options.load},
                 {"memory", options.memoryName()},
                 {"average", nameOf(options.average)},
                 {"aggregate", options.aggregate},
                 {"streams", options.streams},
                 {"registered", options.registers},
                 {"cpu_time", options.reportsCpuTime},
                 {"reference", options.reference},
                 {"cluster", nullptr},
                 {"results", Json::array()}};
  if (options.job) report["launcher"] = options.job->launcher;
  for (const Member& member : facts.members) report["hosts"].push_back(member.host);
  if (options.cluster) report["cluster"] = {{"shape", options.cluster->text()}, {"place", options.placement}};
  for (const Row& row : rows) report["results"].push_back(result(options, row));
  return report.dump(options.appends ? -1 : 2) + '\n';
}

}  // namespace tacc::bench
