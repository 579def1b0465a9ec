#pragma once

#include <string>
#include <vector>

#include "coordinator/options.hpp"
#include "coordinator/result.hpp"
#include "coordinator/team.hpp"

namespace tacc::bench {

/// A number in `width` characters as nccl-tests prints it: decimals are dropped as it grows.
std::string fitNumber(double value, int width);

/// The output in the format of nccl-tests: its scripts can read the header, the rows and the footer. Columns for peers
/// and for the memory bound follow the in-place columns.
std::string tableHeader(const Options& options, const std::vector<Member>& members, int libraryVersion);
std::string tableRow(const Options& options, const Row& row);
std::string tableFooter(const Options& options, const std::vector<Row>& rows);

}  // namespace tacc::bench
