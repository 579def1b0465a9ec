// Hierarchical EASGD: ranks of a group sum their gradients in every step, groups exchange with the center.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "easgd/averaged.hpp"

namespace tacc {

/// Ranks of a group have the same weights. In groups of equal size each rank of a group keeps its slice of the group's
/// one center, and exchanges it with the ranks of the other groups that have the same slice; then the group gathers
/// its slices. So each group sends its weights once. In groups of unequal size every rank keeps the whole center.
class GroupedExchange final : public CenterExchange {
 public:
  /// Collective: splits the communicator.
  explicit GroupedExchange(const ExchangeParts& parts);

  int parts() const noexcept override { return groups_; }
  void start() override { between_->start(); }
  void exchange(const LocalStep& step, float alpha) override;
  void stepAlone(const LocalStep& step, std::size_t count) override;
  bool stepsTogether() const noexcept override { return true; }
  void readCenter(float* to) override;
  std::vector<std::span<float>> state() override { return between_->state(); }
  void restore() override { between_->restore(); }

 private:
  /// This rank's slice of the model; the last rank of a group has also what is left over.
  struct Slice {
    std::size_t begin = 0, count = 0;
  };
  /// Where group members hold one slice each, gives all of them all slices.
  void gather(float* numbers);
  /// Runs calls on `part`, null where that is the whole communicator. A rank that fails tells those who wait for it in
  /// either direction, and says which ranks `members` are outside.
  template <class Work>
  void callOn(const Communicator* part, const std::vector<int>& members, const Work& work);

  const std::size_t count_;
  int groups_ = 1;
  bool isSliced_ = false;
  Slice mine_;
  std::unique_ptr<Communicator> group_;  // null: all are one group
  std::unique_ptr<Communicator> lane_;   // one rank of each group; null: all ranks exchange
  Communicator* inner_ = nullptr;        // of the group
  std::vector<int> groupMembers_, laneMembers_;
  std::unique_ptr<AveragedExchange> between_;
};

}  // namespace tacc
