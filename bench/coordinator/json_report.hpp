#pragma once

#include <string>
#include <vector>

#include "coordinator/options.hpp"
#include "coordinator/result.hpp"

namespace tacc::bench {

/// {"collective","ranks","memory","reference","cluster":{"shape","place"},"results":[{"size","count","type","redop",
/// "root","time","alg_bw","bus_bw","wrong","algorithm","cpu_seconds","stolen","peers":{NAME:{"time","ratio","cpu_seconds"}}}]}:
/// out-of-place times in microseconds, ratio = peer's time / the reference's (tacc's, by default), processor seconds
/// per call and rank, share of the processors' time that a hypervisor stole. "wrong" is null when nothing was checked;
/// a peer that does not offer the call has null, and so has the cluster on one node. Where there is a bound, of memory
/// or of the network, the result has "bound":{"time","ratio"}.
std::string jsonReport(const Options& options, const std::vector<Row>& rows);

}  // namespace tacc::bench
