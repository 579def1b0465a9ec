// What to try when calls take longer than the model says: it is told what may have become slow, and prices again.
#pragma once

#include <vector>

#include "selection/network_prices.hpp"

namespace tacc {

/// Algorithms that are worth trying instead of `current`, whose calls take `ratio` times as long as they should.
///
/// Suspected are, each by itself: the uplinks of each level, a host's own link, and the latencies. Each is made so much
/// slower, by powers of two, that the price of `current` grows as its time has; one that cannot explain the time is
/// dropped. Suggested are the algorithms that beat `current` on one of these machines, or where nothing is suspected,
/// on the machine as it was; and the next best, up to six. The most promising comes first. A pure function, as
/// priceNetworkAlgorithms(); it costs some ten times as much.
std::vector<const Algorithm*> suggestAlgorithms(const NetworkQuestion& question, const CostMachine& machine,
                                                const Algorithm& current, double ratio);

}  // namespace tacc
