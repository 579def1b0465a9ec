// Hierarchical EASGD: ranks of a group sum their gradients in every step, groups exchange with the center.
#pragma once

#include <memory>

#include "easgd/averaged.hpp"

namespace tacc {

class GroupedExchange final : public CenterExchange {
 public:
  /// Collective: splits the communicator.
  explicit GroupedExchange(const ExchangeParts& parts);

  int parts() const noexcept override { return groups_; }
  void start() override { between_->start(); }
  void exchange(const LocalStep& step, float alpha) override;
  void stepAlone(const LocalStep& step, std::size_t count) override;
  bool stepsTogether() const noexcept override { return true; }
  void readCenter(float* to) override { between_->readCenter(to); }
  std::vector<std::span<float>> state() override { return between_->state(); }
  void restore() override { between_->restore(); }

 private:
  std::unique_ptr<Communicator> group_;  // null: all are one group
  Communicator* inner_ = nullptr;        // of the group
  int groups_ = 1;
  std::unique_ptr<AveragedExchange> between_;
};

}  // namespace tacc
