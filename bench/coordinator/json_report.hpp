#pragma once

#include <string>
#include <vector>

#include "coordinator/options.hpp"
#include "coordinator/result.hpp"

namespace tacc::bench {

/// {"collective","ranks","memory","results":[{"size","count","type","redop","root","time","alg_bw","bus_bw","wrong",
/// "algorithm","peers":{NAME:{"time","ratio"}}}]}: out-of-place times in microseconds, ratio = peer's time / tacc's.
/// "wrong" is null when nothing was checked; a peer that does not offer the call has null. Where the memory bound was
/// measured the result has "bound":{"time","ratio"} in the same sense.
std::string jsonReport(const Options& options, const std::vector<Row>& rows);

}  // namespace tacc::bench
