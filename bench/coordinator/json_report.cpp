#include "coordinator/json_report.hpp"

#include <nlohmann/json.hpp>

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

Json result(const Options& options, const Row& row) {
  const double time = row.outOfPlace.microseconds;
  Json object = {{"size", row.bytes},
                 {"count", row.count},
                 {"type", typeName(row.type)},
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
  for (const PeerOutcome& peer : row.peers) object["peers"][peer.name] = compared(row, peer.outcome);
  if (row.bound) object["bound"] = compared(row, row.bound);
  return object;
}

}  // namespace

std::string jsonReport(const Options& options, const std::vector<Row>& rows) {
  Json report = {{"collective", options.collective->name}, {"ranks", options.ranks}, {"memory", options.memoryName()},
                 {"reference", options.reference},         {"cluster", nullptr},     {"results", Json::array()}};
  if (options.cluster) report["cluster"] = {{"shape", options.cluster->text()}, {"place", options.placement}};
  for (const Row& row : rows) report["results"].push_back(result(options, row));
  return report.dump(2) + '\n';
}

}  // namespace tacc::bench
