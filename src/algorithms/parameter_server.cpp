// Parameter server: one rank takes everybody's vector, adds them up, and sends the sum back to all.
//
//   allreduce, p = 3, server 0:
//     rank   round 0     round 1                             round 2
//      0                 a + from 1 + from 2 -> output, 1, 2
//      1     b -> 0                                          from 0 -> output
//      2     c -> 0                                          from 0 -> output
//
//   Steps: 2. Bytes: (p-1) N into the server and (p-1) N out of it, N each way at all others. It is here as the
//   baseline that trees and rings are compared with; a server whose work is shared by all ranks is twoshot.
//
//   F. Iandola, M. Moskewicz, K. Ashraf, K. Keutzer: FireCaffe: near-linear acceleration of deep neural network
//   training on compute clusters. CVPR 2016.
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

constexpr int server = 0;

bool serves(const PlanRequest& request) { return request.ranks >= 1 && request.collective == Collective::allReduce; }

void write(const PlanRequest& request, PlanWriter& writer) {
  const int p = request.ranks, r = writer.rank();
  if (r == server) {
    std::vector<Operand> everybody = othersThan(server, p);
    everybody.insert(everybody.begin(), output(0));
    return writer.step(1, 0, 1, allInRankOrder(server, p, input(0)), everybody, Sum::complete);
  }
  writer.step(0, 0, 1, {input(0)}, {peer(server)});
  writer.step(2, 0, 1, {peer(server)}, {output(0)});
}

Exchanges exchanges(const PlanRequest&) {
  return {1, {Star{server, false, 1, true, false}, Star{server, true, 1, false, false}}};
}

}  // namespace

constinit const Algorithm parameterServerAlgorithm = {
    "parameter_server",
    "Rank 0 adds everybody's vector and sends the sum back: the baseline, all bytes at one rank's link.",
    "Iandola et al.: FireCaffe: near-linear acceleration of deep neural network training, CVPR 2016",
    serves,
    write,
    exchanges};

}  // namespace tacc
