// The part of CostLoad in which messages of many ranks start at once.
#include <algorithm>
#include <limits>

#include "selection/cost/cost_load.hpp"

namespace tacc {
void CostLoad::everyToEvery(const EveryToEvery& phase) {
  const int p = map_.ranks();
  const int others = phase.sizeOfCircle(p) - (phase.except >= 0 ? 2 : 1);
  if (others <= 0) return;
  // The outermost level at which a message meets its receiver.
  const int outermost = phase.groupSize == 0    ? map_.levels() - 1
                        : phase.isBetweenGroups ? map_.meet(0, p - phase.groupSize)
                                                : map_.meet(0, phase.groupSize - 1);
  const double bytes = phase.blocks * block_;
  const auto takesPart = [&](int r) { return r != phase.except; };
  double transfer = bytes * std::max(others / map_.port(), map_.level(outermost).beta);
  double single = bytes * std::max(1 / map_.port(), map_.level(outermost).beta);
  for (int l = 0; l < outermost; ++l) {
    for (int g = 0; g < map_.groups(l); ++g) {
      const double messages = crossing(phase, map_.beginOf(g, l), map_.endOf(g, l));
      if (messages == 0) continue;
      groupOut_[at(l)][at(g)] += bytes * messages;
      groupIn_[at(l)][at(g)] += bytes * messages;
      transfer = std::max(transfer, bytes * messages * perByteOf(l, g));
      single = std::max(single, bytes * perByteOf(l, g));
    }
  }
  for (int l = 0; l <= outermost; ++l) {
    if (map_.wires(l) == 0) continue;
    const std::vector<double> routes = everyRoute(phase, l);
    double most = 0;
    for (std::size_t wire = 0; wire < routes.size(); ++wire) {
      wire_[at(l)][wire] += bytes * routes[wire];
      most = std::max(most, bytes * routes[wire]);
    }
    transfer = std::max(transfer, most / map_.level(l).linkBytesPerSecond);
  }
  double first = std::numeric_limits<double>::infinity(), last = 0;
  for (int r = 0; r < p; ++r) {
    if (!takesPart(r)) continue;
    first = std::min(first, ready_[at(r)]);
    last = std::max(last, ready_[at(r)]);
  }
  const double handling = others * phase.messages * (phase.groupSize == 0 ? overhead() : map_.overhead(outermost));
  const double work = handling + (phase.combines ? gamma() * others * bytes : 0);
  // Those who are ready early have sent most of their messages when the last one begins.
  const double sent = phase.oneByOne ? std::max({first + transfer, first + handling, last + handling + single})
                                     : std::max(first + handling + transfer, last + handling + single);
  const double end = std::max(sent, last + handling) + map_.level(outermost).alpha + work;
  for (int r = 0; r < p; ++r) {
    if (!takesPart(r)) continue;
    occupy(r, ready_[at(r)], end);
    ready_[at(r)] = end;
    out_[at(r)] += others * bytes;
    in_[at(r)] += others * bytes;
    own_[at(r)] += handling + work;
  }
}

double CostLoad::crossing(const EveryToEvery& phase, int begin, int end) const {
  if (phase.groupSize == 0) {
    const double inside = end - begin - (begin <= phase.except && phase.except < end ? 1 : 0);
    return inside * (map_.ranks() - (phase.except >= 0 ? 1 : 0) - inside);
  }
  double messages = 0;
  for (int r = begin; r < end; ++r) messages += phase.sizeOfCircle(map_.ranks()) - phase.peersIn(r, begin, end);
  return messages;
}

void CostLoad::star(const Star& phase) {
  const int center = phase.center, p = map_.ranks(), outermost = map_.levels() - 1;
  const double others = p - 1, bytes = phase.blocks * block_;
  double start = phase.isOutward ? ready_[at(center)] : 0;
  for (int r = 0; !phase.isOutward && r < p; ++r)
    if (r != center) start = std::max(start, ready_[at(r)]);
  for (int r = 0; r < p; ++r)
    if (r != center) load(phase.isOutward ? center : r, phase.isOutward ? r : center, bytes);
  double transfer =
      std::max(others * bytes / map_.port(center), bytes * std::max(1 / map_.port(), map_.level(outermost).beta));
  for (int l = 0; l < outermost; ++l) {
    const int mine = map_.groupOf(center, l);
    const double inside = map_.endOf(mine, l) - map_.beginOf(mine, l);
    transfer = std::max(transfer, (p - inside) * bytes * perByteOf(l, mine));
    for (int g = 0; g < map_.groups(l); ++g)
      if (g != mine) transfer = std::max(transfer, (map_.endOf(g, l) - map_.beginOf(g, l)) * bytes * perByteOf(l, g));
  }
  for (int l = 0; l <= outermost; ++l) {
    if (map_.wires(l) == 0) continue;
    std::vector<double> crossing(map_.wires(l), 0.0);
    for (int r = 0; r < p; ++r) {
      if (r == center || map_.meet(center, r) != l) continue;
      map_.alongWires(l, phase.isOutward ? center : r, phase.isOutward ? r : center,
                      [&](std::size_t wire) { crossing[wire] += bytes; });
    }
    transfer = std::max(transfer, *std::ranges::max_element(crossing) / map_.level(l).linkBytesPerSecond);
  }
  const double alpha = map_.level(outermost).alpha;
  const double work = others * overhead() + (phase.combines ? gamma() * others * bytes : 0);
  own_[at(center)] += work;
  if (!phase.isOutward) {
    const double end = std::max(ready_[at(center)], start + overhead() + transfer + alpha) + work;
    for (int r = 0; r < p; ++r) {
      if (r == center) continue;
      occupy(r, ready_[at(r)], ready_[at(r)] + overhead() + transfer);
      ready_[at(r)] += overhead();
      own_[at(r)] += overhead();
    }
    occupy(center, end - work, end);
    ready_[at(center)] = end;
    return;
  }
  // One by one, handling goes on while they are sent.
  const double single = alpha + bytes * std::max(map_.level(outermost).beta, 1 / map_.port());
  const double there =
      start + (phase.oneByOne ? std::max(overhead() + transfer + alpha, work + single) : work + transfer + alpha);
  occupy(center, start, there - alpha);
  ready_[at(center)] = start + work;
  for (int r = 0; r < p; ++r) {
    if (r == center) continue;
    const double begin = std::max(ready_[at(r)], there);
    occupy(r, begin, begin + overhead());
    ready_[at(r)] = begin + overhead();
    own_[at(r)] += overhead();
  }
}

}  // namespace tacc
