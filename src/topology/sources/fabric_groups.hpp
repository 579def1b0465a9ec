// Hosts of a fabric that are together in every rail, from cards in the same leaf switches up to all that is joined at
// all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topology/model/rails.hpp"
#include "topology/model/sets.hpp"
#include "topology/sources/fabric_plugs.hpp"

namespace tacc {

class RailGroups {
 public:
  /// Hosts with cards in the same switches. All must outlive this.
  RailGroups(const Fabric& fabric, const std::vector<PluggedHost>& hosts);

  /// Joins groups whose switches are joined in `switches`, which only ever grows.
  void join(Sets& switches);

  std::size_t groups() const noexcept { return grouping_.rails.size(); }
  /// Rails are switches that stand for all that they are joined to.
  const RailGrouping& grouping() const noexcept { return grouping_; }
  /// By group: bytes/s of all cables that leave it, each way; nothing where the speed of one is unknown.
  std::optional<std::vector<double>> uplinks(Sets& switches) const;

 private:
  const Fabric& fabric_;
  const std::vector<PluggedHost>& hosts_;
  RailGrouping grouping_;
};

}  // namespace tacc
