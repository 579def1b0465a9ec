// What is played of a plan on a machine: ranks with steps, messages, and the links that they share.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/exchanges.hpp"
#include "algorithms/registry.hpp"
#include "selection/cost/cost_machine.hpp"
#include "selection/cost/rank_classes.hpp"

namespace tacc {

/// A rank, message or link of the model stands for itself, or for all that are alike: they do the same at the same
/// time.
struct PlayModel {
  struct Message {
    int sender = 0;
    int pair = 0;  // of sender and receiver: messages of one pair follow one another
    double bytes = 0;
    double alpha = 0, rate = 0;  // latency, and what a stream carries between its ends
  };
  struct Crossing {
    int link = 0;
    int messages = 1;  // of those that the message stands for, how many cross it
  };
  /// A list for each of many, one behind the other.
  template <class T>
  struct Lists {
    std::vector<T> items;
    std::vector<std::size_t> ends;

    std::span<const T> of(int list) const {
      const auto i = static_cast<std::size_t>(list);
      const std::size_t begin = i == 0 ? 0 : ends[i - 1];
      return std::span(items).subspan(begin, ends[i] - begin);
    }
    void close() { ends.push_back(items.size()); }
  };

  std::vector<Message> messages;
  Lists<Crossing> crossings;       // per message
  Lists<int> awaiters;             // per message: steps that need it
  std::vector<double> capacities;  // per link, bytes per second
  double crowding = 1;             // as the machine's
  std::size_t pairs = 0;
  std::vector<int> firstSteps = {0};  // per rank, and one more: the number of its first step among those of all
  std::vector<int> rankOf;            // per step
  std::vector<double> seconds;        // per step, of the rank's CPU
  std::vector<int> awaited;           // per step: messages that it needs
  Lists<int> sends;                   // per step

  int ranks() const noexcept { return static_cast<int>(firstSteps.size()) - 1; }
};

/// The model with every rank by itself.
PlayModel playModelOf(const Plan& plan, const CostMap& map, double chunkBytes);

/// The model with one rank of each class, from the steps of these and of the ranks that send to them. nullopt: these
/// are more than `mostSteps`, or classes hold ranks that are not alike.
std::optional<PlayModel> playModelOf(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                                     const RankClasses& classes, double chunkBytes, std::size_t mostSteps);

/// The same from what the plan exchanges, in the time of a few phases a rank where writing its steps would take that of
/// passing over all ranks. nullopt also: PhaseParts do not serve these exchanges.
std::optional<PlayModel> playModelOf(const Exchanges& exchanges, const PlanRequest& request, const CostMap& map,
                                     const RankClasses& classes, double chunkBytes, std::size_t mostSteps);

}  // namespace tacc
