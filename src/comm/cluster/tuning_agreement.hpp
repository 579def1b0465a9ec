// The tuning file of a communicator: found, agreed on by all ranks, and held against what is here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/plan.hpp"
#include "comm/bootstrap/bootstrap.hpp"
#include "comm/hosts.hpp"
#include "core/environment.hpp"
#include "selection/tuning/tuning.hpp"
#include "topology/sources/host_clues.hpp"

namespace tacc {

struct TuningText {
  std::string path;
  std::string text;
  bool isNamed = false;  // by TACC_TUNE_FILE: then it must fit
};

/// The file that TACC_TUNE_FILE names, else the user's, else the machine's. An Error if a named one cannot be read.
std::optional<TuningText> lookForTuning(const Environment& environment, const Surroundings& here);

/// What a communicator would use a file for.
struct TuningUse {
  TuningPlace here;
  /// The request for the plan of a collective.
  std::function<PlanRequest(Collective)> requestOf;
  /// A communicator split off another one, which the file may be meant for.
  bool isPart = false;
};

/// Inside one host.
TuningUse tuningUseOfNode(int ranks, bool isPart);

/// Null if the file does not fit and needs not: it is a part's, or was found and not named. Then the reason is logged
/// on rank 0. A named file that is damaged or does not fit is an Error with the reason.
std::shared_ptr<const Tuning> judgeTuning(const TuningText& found, const TuningUse& use, int rank);

/// Collective: the first rank of every host looks; all ranks use what rank 0 has, or nothing. Hosts with different
/// files are an Error (taccInvalidUsage) that names two of them, if any was named, else none of them is used.
std::shared_ptr<const Tuning> agreeOnTuning(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, int rank,
                                            const Environment& environment, const TuningUse& use);

}  // namespace tacc
