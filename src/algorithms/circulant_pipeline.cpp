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
#include <optional>
#include <utility>

#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"
#include "core/index.hpp"

namespace tacc {
namespace {

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
  int from, to;
  int block;
};

/// Who sends what in which round.
class Hops {
 public:
  explicit Hops(int p)
      : p_(p),
        skips_(skipsOf(p)),
        q_(static_cast<int>(skips_.size()) - 1),
        rounds_(blocks - 1 + q_),
        idle_((q_ - rounds_ % q_) % q_) {}

  int rounds() const { return rounds_; }

  /// By round, the one that ends at a place; not at the root.
  std::vector<std::optional<Hop>> to(int place) const {
    std::vector<std::optional<Hop>> hops(at(rounds_));
    const std::vector<int> schedule = Search(skips_, place).take();
    for (int i = idle_; i < rounds_ + idle_; ++i) take(hops, i, schedule, place);
    return hops;
  }

  /// By round, the one that begins at a place.
  std::vector<std::optional<Hop>> from(int place) const {
    std::vector<std::optional<Hop>> hops(at(rounds_));
    for (int k = 0; k < q_; ++k) {
      const int receiver = wrap(place + skips_[at(k)], p_);
      if (receiver == 0) continue;
      const std::vector<int> schedule = Search(skips_, receiver).take();
      for (int i = k < idle_ ? k + q_ : k; i < rounds_ + idle_; i += q_) take(hops, i, schedule, receiver);
    }
    return hops;
  }

 private:
  /// What place `to` receives in round i, counted from the first phase's beginning.
  void take(std::vector<std::optional<Hop>>& hops, int i, const std::vector<int>& schedule, int to) const {
    const int block = std::min(schedule[at(i % q_)] + i / q_ * q_ - idle_, blocks - 1);
    if (block >= 0) hops[at(i - idle_)] = Hop{wrap(to - skips_[at(i % q_)], p_), to, block};
  }

  int p_;
  std::vector<int> skips_;
  int q_;
  int rounds_;
  int idle_;  // rounds left out of the first phase, so that the last one is whole
};

/// The part of one place.
class Pipeline {
 public:
  Pipeline(const PlanRequest& request, PlanWriter& writer)
      : root_(request.root),
        p_(request.ranks),
        place_(wrap(writer.rank() - root_, p_)),
        hops_(p_),
        to_(place_ == 0 ? std::vector<std::optional<Hop>>(static_cast<std::size_t>(hops_.rounds())) : hops_.to(place_)),
        from_(hops_.from(place_)),
        writer_(writer) {
    writer_.cutInto(blocks);
  }

  /// What is received in a round and sent in the next one is one step; what is sent later is sent from the output.
  void broadcast() {
    std::array<bool, blocks> isCopied = {};  // at the root: from the input to the output
    for (std::size_t round = 0; round <= to_.size(); ++round) {
      std::optional<Hop> sent = round < from_.size() ? from_[round] : std::nullopt;
      if (const std::optional<Hop> received = round > 0 ? to_[round - 1] : std::nullopt) {
        std::vector<Operand> destinations = {output(received->block)};
        if (sent && sent->block == received->block) destinations.push_back(at(std::exchange(sent, {})->to));
        step(round, received->block, {at(received->from)}, destinations);
      }
      if (!sent) continue;
      std::vector<Operand> destinations = {at(sent->to)};
      if (place_ == 0 && !std::exchange(isCopied[index(sent->block)], true))
        destinations.push_back(output(sent->block));
      step(round, sent->block, {place_ == 0 ? input(sent->block) : output(sent->block)}, destinations);
    }
  }

  /// Hops backwards: from `to` to `from`. Sums that wait for their turn lie in scratch, the root's in its output.
  void reduce() {
    writer_.needScratch(p_ > 2 ? blocks : 0);
    const std::size_t rounds = to_.size();
    // Of each block: the round in which the place sends its sum, to whom, and the one in which the last part of it
    // comes.
    std::array<std::size_t, blocks> sends = {}, last = {};
    std::array<int, blocks> parents = {};
    std::array<bool, blocks> hasSum = {}, isSent = {};
    for (std::size_t round = 0; round < rounds; ++round) {
      if (const std::optional<Hop>& hop = to_[rounds - 1 - round]) {
        sends[index(hop->block)] = round;
        parents[index(hop->block)] = hop->from;
      }
      if (const std::optional<Hop>& hop = from_[rounds - 1 - round]) last[index(hop->block)] = round;
    }
    for (std::size_t round = 0; round < rounds; ++round) {
      if (const std::optional<Hop>& hop = to_[rounds - 1 - round]; hop && !isSent[index(hop->block)])
        step(round, hop->block, {hasSum[index(hop->block)] ? scratch(hop->block) : input(hop->block)}, {at(hop->from)});
      const std::optional<Hop>& hop = from_[rounds - 1 - round];
      if (!hop) continue;
      const int block = hop->block;
      const std::size_t b = index(block);
      const Operand sum = place_ == 0 ? output(block) : scratch(block);
      const bool passesOn = place_ != 0 && sends[b] == round + 1;
      step(round + 1, block, {hasSum[b] ? sum : input(block), at(hop->to)}, {passesOn ? at(parents[b]) : sum},
           place_ == 0 && last[b] == round ? Sum::complete : Sum::partial);
      hasSum[b] = true;
      isSent[b] = passesOn;
    }
  }

 private:
  static std::size_t index(int block) { return static_cast<std::size_t>(block); }
  Operand at(int place) const { return peer(wrap(root_ + place, p_)); }
  void step(std::size_t round, int block, std::vector<Operand> sources, std::vector<Operand> destinations,
            Sum sum = Sum::partial) {
    writer_.step(static_cast<int>(round), block, 1, std::move(sources), std::move(destinations), sum);
  }

  int root_;
  int p_;
  int place_;
  Hops hops_;
  std::vector<std::optional<Hop>> to_, from_;  // by round
  PlanWriter& writer_;
};

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 && isOneOf(request.collective, {Collective::broadcast, Collective::reduce});
}

void write(const PlanRequest& request, PlanWriter& writer) {
  Pipeline pipeline(request, writer);
  if (request.collective == Collective::broadcast) return pipeline.broadcast();
  pipeline.reduce();
}

Exchanges exchanges(const PlanRequest& request) {
  const int p = request.ranks;
  const bool isDown = request.collective == Collective::broadcast;
  std::vector<int> nobody(static_cast<std::size_t>(p));
  std::iota(nobody.begin(), nobody.end(), 0);
  const Hops all(p);
  std::vector<std::vector<int>> receivers(static_cast<std::size_t>(all.rounds()), nobody);  // of each round
  for (int place = 1; place < p; ++place) {
    const std::vector<std::optional<Hop>> hops = all.to(place);
    for (std::size_t round = 0; round < hops.size(); ++round) {
      if (!hops[round]) continue;
      const int above = wrap(request.root + hops[round]->from, p), below = wrap(request.root + place, p);
      receivers[round][static_cast<std::size_t>(isDown ? above : below)] = isDown ? below : above;
    }
  }
  if (!isDown) std::ranges::reverse(receivers);
  Exchanges exchanged{blocks, {}, isDown ? request.root : -1};
  for (std::vector<int>& to : receivers) {
    Exchange round;
    round.to = [to = std::move(to)](int rank) { return to[static_cast<std::size_t>(rank)]; };
    round.combines = !isDown;
    exchanged.phases.emplace_back(std::move(round));
  }
  return exchanged;
}

}  // namespace

constinit const Algorithm circulantPipelineAlgorithm = {
    "circulant_pipeline",
    "Blocks follow one another on a circulant graph: fewest rounds for data in blocks: broadcast and reduce.",
    "Träff: Optimal broadcast schedules in logarithmic time, arXiv 2407.18004",
    serves,
    write,
    exchanges};

}  // namespace tacc
