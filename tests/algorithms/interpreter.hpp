// Runs a plan on real numbers, on all ranks, in one thread: a second opinion on what the verifier proves. It shares no
// code with the verifier and follows only the rules at the top of plan.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/plan.hpp"
#include "algorithms/registry.hpp"
#include "support/collective_contract.hpp"

namespace tacc::test {

/// What may be known of where p ranks are: nothing, groups that are equal, unequal, nested, tori, and who is narrow.
inline std::vector<PlanRequest> layoutsOf(int p) {
  std::vector<PlanRequest> layouts(1);
  const auto add = [&](std::vector<std::vector<int>> groups, std::vector<int> dimensions) {
    layouts.emplace_back();
    layouts.back().groups = std::move(groups);
    layouts.back().dimensions = std::move(dimensions);
  };
  add({{p}}, {p});
  for (const int inner : {2, 3, 4, 8}) {
    if (p % inner != 0) continue;
    add(equalGroups(p, {inner}), {p / inner, inner});
    for (const int outer : {2, 3}) {
      if (p % (inner * outer) != 0) continue;
      add(equalGroups(p, {inner, outer}), {p / inner / outer, outer, inner});
      if (p % (2 * inner * outer) == 0) add(equalGroups(p, {inner, outer, 2}), {});
    }
  }
  if (p > 2) {
    add({{1, p - 1}}, {});
    add({{p - p / 3, p / 3}}, {});
    std::vector<int> sizes;
    for (int left = p; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, 3));
    add({sizes}, {});
    if (sizes.size() > 2) add({sizes, {sizes[0] + sizes[1], p - sizes[0] - sizes[1]}}, {});
    if (p % 2 == 0 && p > 4) add({std::vector<int>(p / 2, 2), {2, p - 2}}, {});
    // One in the middle; the first group; the last ones.
    const auto addNarrow = [&](std::vector<std::vector<int>> groups, std::vector<int> narrow) {
      add(std::move(groups), {});
      layouts.back().narrow = std::move(narrow);
    };
    addNarrow({}, {p / 2});
    addNarrow({sizes}, {0, 1, 2});
    addNarrow({{p - p / 3, p / 3}}, {p - 2, p - 1});
  }
  return layouts;
}

/// Every request that the algorithm serves on p ranks: all collectives, all roots of the rooted ones, and what may be
/// known of where the ranks are if it looks there.
inline std::vector<PlanRequest> requestsServed(const Algorithm& algorithm, int p) {
  std::vector<PlanRequest> requests;
  for (int c = 0; c < collectiveCount; ++c) {
    for (PlanRequest request : layoutsOf(p)) {
      if (request.hasLayout() && !algorithm.looksAtLayout) continue;
      request.collective = static_cast<Collective>(c);
      request.ranks = p;
      for (request.root = 0; request.root < (isRooted(request.collective) ? p : 1); ++request.root) {
        if (algorithm.serves(request)) requests.push_back(request);
      }
    }
  }
  return requests;
}

inline std::string shown(const std::vector<std::vector<int>>& lists) {
  std::string text;
  for (const std::vector<int>& list : lists) {
    text += "(";
    for (const int number : list) text += std::to_string(number) + " ";
    text += ")";
  }
  return text;
}

inline std::string describe(const Plan& plan) {
  return plan.algorithm + " " + std::string(nameOf(plan.request.collective)) +
         " p=" + std::to_string(plan.request.ranks) + " root=" + std::to_string(plan.request.root) +
         " groups=" + shown(plan.request.groups) + " dimensions=" + shown({plan.request.dimensions}) +
         " narrow=" + shown({plan.request.narrow});
}

/// One vector per rank.
template <class T>
using PerRank = std::vector<std::vector<T>>;

template <class T>
class Interpreter {
 public:
  /// `count` as in the C interface. `seed` decides in which order ranks and the steps of a round run.
  Interpreter(const Plan& plan, std::size_t count, bool inPlace, unsigned seed)
      : plan_(plan), count_(count), inPlace_(inPlace), random_(seed) {}

  /// Runs the plan and returns the outputs. `inputs[r]` has the elements of rank r's whole input buffer.
  PerRank<T> run(const PerRank<T>& inputs) {
    const int p = plan_.request.ranks;
    for (int rank = 0; rank < p; ++rank) {
      input_.push_back(inputs[rank]);
      output_.emplace_back(elements(outputBlocksOf(plan_, rank)), T(77));
      scratch_.emplace_back(elements(plan_.scratchBlocks), T(99));
      for (int block = 0; inPlace_ && block < inputBlocksOf(plan_, rank); ++block) {
        if (inPlaceOutputOf(plan_, rank, block) < 0) continue;
        std::copy_n(inputs[rank].data() + offset(block), size(block), at(rank, input(block), 0));
      }
      numberMessages(rank);
    }
    for (int round = 0; round < plan_.rounds; ++round) {
      std::vector<std::pair<int, std::size_t>> steps;
      for (int rank = 0; rank < p; ++rank) {
        for (std::size_t i = 0; i < plan_.ranks[rank].steps.size(); ++i) {
          if (plan_.ranks[rank].steps[i].round == round) steps.emplace_back(rank, i);
        }
      }
      std::shuffle(steps.begin(), steps.end(), random_);
      for (const auto& [rank, i] : steps) runStep(rank, i, plan_.ranks[rank].steps[i]);
    }
    return output_;
  }

 private:
  using MessageKey = std::pair<std::pair<int, int>, int>;  // sender, receiver, number
  using OperandKey = std::pair<std::pair<int, std::size_t>, std::pair<bool, int>>;

  bool split() const { return partitionOf(plan_.request.collective) == Partition::split; }
  std::size_t offset(int block) const {
    const auto b = static_cast<std::size_t>(block);
    return split() ? b * count_ / static_cast<std::size_t>(plan_.blocks) : b * count_;
  }
  std::size_t size(int block) const { return offset(block + 1) - offset(block); }
  std::size_t elements(int blocks) const { return offset(blocks); }

  /// The k-th message from a to b is in order of rounds, then of steps, whatever order the steps run in.
  void numberMessages(int rank) {
    std::map<int, int> sent;
    std::map<int, int> received;
    for (std::size_t i = 0; i < plan_.ranks[rank].steps.size(); ++i) {
      const Step& step = plan_.ranks[rank].steps[i];
      for (const Operand& o : step.sources) {
        if (o.kind == Operand::Kind::peer) number_[{{rank, i}, {false, o.index}}] = received[o.index]++;
      }
      for (const Operand& o : step.destinations) {
        if (o.kind == Operand::Kind::peer) number_[{{rank, i}, {true, o.index}}] = sent[o.index]++;
      }
    }
  }

  T* at(int rank, const Operand& operand, int i) {
    const int block = operand.index + i;
    if (operand.kind == Operand::Kind::scratch) return scratch_[rank].data() + offset(block);
    if (operand.kind == Operand::Kind::output) return output_[rank].data() + offset(block);
    const int alias = inPlace_ ? inPlaceOutputOf(plan_, rank, block) : -1;
    return alias >= 0 ? output_[rank].data() + offset(alias) : input_[rank].data() + offset(block);
  }

  std::vector<T> load(int rank, std::size_t index, const Step& step, const Operand& operand) {
    if (operand.kind == Operand::Kind::peer) {
      const auto message = messages_.find({{operand.index, rank}, number_[{{rank, index}, {false, operand.index}}]});
      if (message == messages_.end()) throw std::runtime_error("a message is taken before it was sent");
      return message->second;
    }
    std::vector<T> data;
    for (int i = 0; i < step.blockCount; ++i) {
      const T* from = at(rank, operand, i);
      data.insert(data.end(), from, from + size(operand.index + i));
    }
    return data;
  }

  void runStep(int rank, std::size_t index, const Step& step) {
    std::vector<T> sum = load(rank, index, step, step.sources[0]);
    for (std::size_t s = 1; s < step.sources.size(); ++s) {
      const std::vector<T> more = load(rank, index, step, step.sources[s]);
      if (more.size() != sum.size()) throw std::runtime_error("sources differ in length");
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<T>(sum[i] + more[i]);
    }
    for (const Operand& operand : step.destinations) {
      if (operand.kind == Operand::Kind::peer) {
        messages_[{{rank, operand.index}, number_[{{rank, index}, {true, operand.index}}]}] = sum;
        continue;
      }
      const T* from = sum.data();
      for (int i = 0; i < step.blockCount; ++i) {
        const std::size_t length = size(operand.index + i);
        std::copy_n(from, length, at(rank, operand, i));
        from += length;
      }
    }
  }

  const Plan& plan_;
  std::size_t count_;
  bool inPlace_;
  std::mt19937 random_;
  PerRank<T> input_, output_, scratch_;
  std::map<MessageKey, std::vector<T>> messages_;
  std::map<OperandKey, int> number_;
};

/// Input of every rank, full length also where the collective reads less.
template <class T, class Make>
PerRank<T> makeInputs(const Plan& plan, std::size_t count, Make make) {
  PerRank<T> inputs;
  const bool split = partitionOf(plan.request.collective) == Partition::split;
  for (int rank = 0; rank < plan.request.ranks; ++rank) {
    const auto blocks = static_cast<std::size_t>(inputBlocksOf(plan, rank));
    std::vector<T> input(split ? count : blocks * count);
    for (T& x : input) x = make();
    inputs.push_back(std::move(input));
  }
  return inputs;
}

/// What the collective is to deliver, as its contract says.
template <class T>
PerRank<T> expectedOutputs(const PlanRequest& request, std::size_t count, const PerRank<T>& inputs) {
  PerRank<T> outputs;
  for (int rank = 0; rank < request.ranks; ++rank) {
    const Contract contract{request.collective, rank, request.ranks, request.root, count};
    std::vector<T>& output = outputs.emplace_back();
    for (std::size_t i = 0; contract.receives() && i < contract.received(); ++i) {
      const Origin from = contract.origin(i);
      T total{};
      for (int other = from.first; other < from.behind; ++other)
        total = static_cast<T>(total + inputs[static_cast<std::size_t>(other)][from.index]);
      output.push_back(total);
    }
  }
  return outputs;
}

}  // namespace tacc::test
