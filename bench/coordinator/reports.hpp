// What a run says of its rows: a table, a line, JSON and a drawing, each in the source of that name.
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

/// What the run says in one line: how tacc stands to the peers, in the geometric mean and where it is worst, or,
/// without peers, its least time and highest bandwidth. Before it, if a hypervisor held up the measurement, a line that
/// says so.
std::string summarize(const Options& options, const std::vector<Row>& rows);

/// What is true of a whole run.
struct RunFacts {
  std::string begin, end;  ///< as in "2026-05-01T12:00:00Z"
  int libraryVersion;
  std::vector<Member> members;  ///< of the reference, by rank
};

/// {"version","library_version","start_time","end_time","arguments","environment":{NAME:VALUE},"launcher","hosts":[...],
/// "collective","ranks","load","memory","average","aggregate","streams","registered","cpu_time","reference",
/// "cluster":{"shape","place"},"results":[{"size","count","type","redop","root","time","alg_bw","bus_bw","wrong",
/// "algorithm","cpu_seconds","calls","stolen","in_place":{"time","alg_bw","bus_bw","wrong","cpu_seconds","calls"},
/// "peers":{NAME:{"time","ratio","cpu_seconds"}}}]}: the environment is what is set of TACC_*, TACC_JOB_SECRET
/// excepted; hosts are by rank; the launcher is null where there is none. Times are out of place unless they stand in
/// "in_place" (null where there is no such call), in microseconds; with --per_iter, "calls" has
/// {"min","avg","max","p50","p90","p99", "cv"} of the calls of all ranks, else it is missing. "cpu_time": times are
/// processor times; ratio = peer's time / the reference's (tacc's, by default), processor seconds per call and rank,
/// share of the processors' time that a hypervisor stole. "wrong" is null when nothing was checked; a peer that does
/// not offer the call has null, and so has the cluster on one node. Where there is a bound, of memory or of the
/// network, the result has "bound":{"time","ratio"}. With options.appends all of it is on one line.
std::string jsonReport(const Options& options, const RunFacts& facts, const std::vector<Row>& rows);

/// A line of the drawing.
struct Series {
  struct Point {
    double bytes;
    double microseconds;
  };
  std::string label;
  std::vector<Point> points;
};

/// The rows as lines: tacc, each peer and the bound, for every type, operation and root that was measured.
std::vector<Series> collectSeries(const Options& options, const std::vector<Row>& rows);

/// An SVG drawing of time over size, both axes logarithmic.
std::string drawPlot(const std::string& title, const std::vector<Series>& series);

/// "allreduce, 2 ranks, float sum, private memory".
std::string plotTitle(const Options& options);

}  // namespace tacc::bench
