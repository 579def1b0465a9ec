// Pipelined broadcast on a circulant graph (Träff): in every round every rank sends one block and receives another.
//
//   q = ceil(lg p); skips s_0 = 1 < s_1 < ... < s_q = p with s_k = ceil(s_{k+1} / 2). The n blocks take n - 1 + q
//   rounds, in phases of q: in round k of a phase rank r receives from r - s_k and sends to r + s_k (ranks counted from
//   the root). Which block: schedule[k] of the receiver, plus q for every phase; blocks before 0 are left out, and what
//   is beyond the last block is the last one. The schedule of r names q different blocks: its base block b, the first
//   that it ever gets and which reaches it on the greedy path of skips from the root, and -q .. -1 without b - q. What
//   r sends in round k it received earlier in the phase, or it is b - q, received as b in the phase before.
//
//   p = 5, q = 3, skips 1, 2, 3, 5: schedules          r = 1: 0 -3 -2   (b = 0)      r = 3: -3 -2  2  (b = 2)
//                                                      r = 2: -3 1 -2   (b = 1)      r = 4: -1 -3  0  (b = 0)
//
//   reduce is the same backwards: the message of round k goes the other way in the last round but k, and every rank
//   adds what it gets for a block to its own before it hands the sum on.
//
//   Steps: ceil(lg p) until the first block is everywhere, B - 1 + ceil(lg p) for all B = 16: no plan that sends one
//   block at a time needs fewer. Bytes: no rank receives (reduce: sends) more than N, and none sends more than 2 N.
//
//   J. L. Träff: Optimal broadcast schedules in logarithmic time with applications to broadcast, all-broadcast,
//   reduction and all-reduction. arXiv 2407.18004 (2024); the search is its algorithm for receive schedules.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

constexpr std::string_view name = "circulant_pipeline";
constexpr int blocks = 16;

std::vector<int> skipsOf(int p) {
  std::vector<int> skips = {p};
  while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
  std::reverse(skips.begin(), skips.end());
  return skips;
}

/// Finds the receive schedule of one rank: for every round the last block, among those not taken yet, whose path of
/// skips from the root ends where the sender can have it.
class Search {
 public:
  Search(const std::vector<int>& skips, int r)
      : skips_(skips), q_(static_cast<int>(skips.size()) - 1), target_(skips.back() + r) {
    skips_.push_back(4 * skips.back());  // a bound for the round after the last
    for (int block = 0; block <= q_; ++block) next_[block + 1] = block - 1;
    const int base = baseBlock(r);
    unlink(base);
    fill(0, skips.back() * 2, next_[0], 0);
    for (int& block : schedule_) block = block == q_ ? base : block - q_;
  }
  std::vector<int> take() { return std::move(schedule_); }

 private:
  int baseBlock(int r) const {
    for (int k = q_ - 1, at = 0; k >= 0; --k) {
      if (at + skips_[k] == r) return k;
      if (at + skips_[k] < r) at += skips_[k];
    }
    return q_;
  }

  /// Blocks q, q-1, ..., 0 stand in a list; its head and its end are -1.
  void unlink(int block) {
    int before = -1;
    while (next_[before + 1] != block) before = next_[before + 1];
    next_[before + 1] = next_[block + 1];
  }

  /// Goes on from rank `at`, with blocks up to `block`, for round k. Returns the next round to fill.
  int fill(int at, int limit, int block, int k) {
    for (; block >= 0 && k < q_; block = next_[block + 1]) {
      const int reached = at + skips_[block];
      if (reached > target_ - skips_[k] || reached >= limit) continue;
      if (reached <= target_ - skips_[k + 1]) k = fill(reached, limit, block, k);
      if (k == q_ || at > target_ - skips_[k + 1]) return k;
      limit = reached;
      schedule_[k++] = block;
      unlink(block);
    }
    return k;
  }

  std::vector<int> skips_;
  int q_;
  int target_;
  std::vector<int> next_ = std::vector<int>(static_cast<std::size_t>(q_) + 2, q_);  // of block b at b + 1
  std::vector<int> schedule_ = std::vector<int>(static_cast<std::size_t>(q_), 0);
};

/// One block on its way from one place to another; places are counted from the root.
struct Hop {
  int round;
  int from, to;
  int block;
};

int roundsOf(const std::vector<int>& skips) { return blocks - 1 + static_cast<int>(skips.size()) - 1; }

/// Calls visit(hop) for each, place by place.
template <class Visit>
void forHops(int p, const Visit& visit) {
  const std::vector<int> skips = skipsOf(p);
  const int q = static_cast<int>(skips.size()) - 1;
  const int rounds = roundsOf(skips);
  const int idle = (q - rounds % q) % q;  // rounds left out of the first phase, so that the last one is whole
  for (int r = 1; r < p; ++r) {
    const std::vector<int> schedule = Search(skips, r).take();
    for (int i = idle; i < rounds + idle; ++i) {
      const int block = std::min(schedule[i % q] + i / q * q - idle, blocks - 1);
      if (block >= 0) visit(Hop{i - idle, wrap(r - skips[i % q], p), r, block});
    }
  }
}

/// In order of rounds.
std::vector<Hop> hopsOf(int p) {
  std::vector<Hop> hops;
  forHops(p, [&](const Hop& hop) { hops.push_back(hop); });
  std::ranges::stable_sort(hops, [](const Hop& a, const Hop& b) { return a.round < b.round; });
  return hops;
}

class Pipeline {
 public:
  explicit Pipeline(const PlanRequest& request)
      : request_(request), p_(request.ranks), hops_(hopsOf(p_)), writer_(request, name, blocks) {}

  /// What is received in a round and sent in the next one is one step; what is sent later is sent from the output.
  Plan broadcast() {
    std::vector<const Hop*> sentNow(static_cast<std::size_t>(p_), nullptr);  // per place, in the round looked at
    for (std::size_t begin = 0, end = 0; begin < hops_.size(); begin = end) {
      const int round = hops_[begin].round;
      for (end = begin; end < hops_.size() && hops_[end].round == round; ++end) sentNow[hops_[end].from] = &hops_[end];
      for (const Hop& hop : received_) {
        std::vector<Operand> destinations = {output(hop.block)};
        const Hop*& next = sentNow[hop.to];
        if (next != nullptr && next->block == hop.block) {
          destinations.push_back(at(next->to));
          next = nullptr;
        }
        writer_.step(rankOf(hop.to), round, hop.block, 1, {at(hop.from)}, destinations);
      }
      for (const Hop*& hop : sentNow) {
        if (hop == nullptr) continue;
        std::vector<Operand> destinations = {at(hop->to)};
        if (hop->from == 0 && !std::exchange(isCopied_[hop->block], true)) destinations.push_back(output(hop->block));
        const Operand source = hop->from == 0 ? input(hop->block) : output(hop->block);
        writer_.step(rankOf(hop->from), round, hop->block, 1, {source}, destinations);
        hop = nullptr;
      }
      received_.assign(hops_.begin() + static_cast<std::ptrdiff_t>(begin),
                       hops_.begin() + static_cast<std::ptrdiff_t>(end));
    }
    for (const Hop& hop : received_)
      writer_.step(rankOf(hop.to), hop.round + 1, hop.block, 1, {at(hop.from)}, {output(hop.block)});
    return writer_.finish();
  }

  /// Hops backwards: from `to` to `from`. Sums that wait for their turn lie in scratch, the root's in its output.
  Plan reduce() {
    writer_.needScratch(p_ > 2 ? blocks : 0);
    const int last = roundsOf(skipsOf(p_)) - 1;
    // The round in which a place sends its sum of a block: it does so once.
    std::vector<int> sends(static_cast<std::size_t>(p_ * blocks), -1), parents(sends);
    const auto indexOf = [&](int place, int block) { return static_cast<std::size_t>(place * blocks + block); };
    for (const Hop& hop : hops_) {
      sends[indexOf(hop.to, hop.block)] = last - hop.round;
      parents[indexOf(hop.to, hop.block)] = hop.from;
    }
    std::vector<bool> hasSum(sends.size(), false), isSent(sends.size(), false);
    for (auto hop = hops_.rbegin(); hop != hops_.rend(); ++hop) {
      const int round = last - hop->round;
      const std::size_t below = indexOf(hop->to, hop->block), above = indexOf(hop->from, hop->block);
      if (!isSent[below]) {
        writer_.step(rankOf(hop->to), round, hop->block, 1, {hasSum[below] ? scratch(hop->block) : input(hop->block)},
                     {at(hop->from)});
      }
      const Operand sum = hop->from == 0 ? output(hop->block) : scratch(hop->block);
      const bool passesOn = hop->from != 0 && sends[above] == round + 1;
      writer_.step(rankOf(hop->from), round + 1, hop->block, 1, {hasSum[above] ? sum : input(hop->block), at(hop->to)},
                   {passesOn ? at(parents[above]) : sum});
      hasSum[above] = true;
      isSent[above] = passesOn;
    }
    return writer_.finish();
  }

 private:
  int rankOf(int place) const { return wrap(request_.root + place, p_); }
  Operand at(int place) const { return peer(rankOf(place)); }

  PlanRequest request_;
  int p_;
  std::vector<Hop> hops_;
  std::vector<Hop> received_;
  std::array<bool, blocks> isCopied_ = {};  // at the root: from the input to the output
  PlanWriter writer_;
};

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 && isOneOf(request.collective, {Collective::broadcast, Collective::reduce});
}

Plan make(const PlanRequest& request) {
  if (request.ranks == 1) return writeCopy(request, name);
  Pipeline pipeline(request);
  return request.collective == Collective::broadcast ? pipeline.broadcast() : pipeline.reduce();
}

Exchanges exchanges(const PlanRequest& request) {
  const int p = request.ranks;
  const bool isDown = request.collective == Collective::broadcast;
  std::vector<int> nobody(static_cast<std::size_t>(p));
  std::iota(nobody.begin(), nobody.end(), 0);
  std::vector<std::vector<int>> receivers(static_cast<std::size_t>(roundsOf(skipsOf(p))), nobody);  // of each round
  forHops(p, [&](const Hop& hop) {
    const int above = wrap(request.root + hop.from, p), below = wrap(request.root + hop.to, p);
    receivers[static_cast<std::size_t>(hop.round)][static_cast<std::size_t>(isDown ? above : below)] =
        isDown ? below : above;
  });
  if (!isDown) std::ranges::reverse(receivers);
  Exchanges all{blocks, {}, isDown ? request.root : -1};
  for (std::vector<int>& to : receivers) {
    Exchange round;
    round.to = [to = std::move(to)](int rank) { return to[static_cast<std::size_t>(rank)]; };
    round.combines = !isDown;
    all.phases.emplace_back(std::move(round));
  }
  return all;
}

}  // namespace

constinit const Algorithm circulantPipelineAlgorithm = {
    name,
    "Blocks follow one another on a circulant graph: fewest rounds for data in blocks: broadcast and reduce.",
    "Träff: Optimal broadcast schedules in logarithmic time, arXiv 2407.18004",
    serves,
    make,
    exchanges};

}  // namespace tacc
