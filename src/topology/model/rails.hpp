// Hosts that are together in every rail. A rail is a separate network that most hosts have a card in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tacc {

/// What a host's cards are plugged into, or, further out, what network that belongs to: numbers, rising.
using Rails = std::vector<std::uint32_t>;

struct RailGrouping {
  std::vector<std::uint32_t> groupOf;  // by host
  std::vector<Rails> rails;            // by group

  /// How many rails most hosts have; 1 if there are none.
  std::uint32_t usualRails() const;
  /// The names of each group's rails, as "a+b"; those of no two groups are the same.
  std::vector<std::string> names(const std::function<std::string(std::uint32_t)>& nameOf) const;
};

/// Hosts with equal rails are a group. Of what is left, the rails of few hosts give way to those of many that have them
/// all, or no others: a card that is missing, or one that most hosts do not have, makes no group.
RailGrouping groupByRails(std::vector<Rails> railsOf);

/// The same further out, where `joined` tells what each rail belongs to; groups are joined and never parted.
RailGrouping joinRails(const RailGrouping& grouping, const std::function<std::uint32_t(std::uint32_t)>& joined);

}  // namespace tacc
