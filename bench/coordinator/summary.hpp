#pragma once

#include <string>
#include <vector>

#include "coordinator/options.hpp"
#include "coordinator/result.hpp"

namespace tacc::bench {

/// What the run says in one line: how tacc stands to the peers, in the geometric mean and where it is worst, or,
/// without peers, its least time and highest bandwidth. Before it, if a hypervisor held up the measurement, a line that
/// says so.
std::string summarize(const Options& options, const std::vector<Row>& rows);

}  // namespace tacc::bench
