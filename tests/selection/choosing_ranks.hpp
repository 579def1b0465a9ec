// Ranks that choose by measured times, without clocks and messages: every rank has its own choice and its own noise,
// and what all must do alike is compared after every call.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "selection/online/call_tuner.hpp"

namespace tacc::test {

/// Seconds that a call takes which runs this option.
using TimeOf = std::function<double(int option, std::uint64_t call)>;

/// Options with the numbers from 0 on.
inline std::vector<int> allOptions(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class ChoosingRanks {
 public:
  /// `noise`: a call takes up to so much more or less. `late`: a rank that another one makes wait measures up to so
  /// much more.
  ChoosingRanks(int ranks, const CallTuner& choice, TimeOf timeOf, double noise, unsigned seed, double late = 3)
      : choices_(static_cast<std::size_t>(ranks), choice),
        timeOf_(std::move(timeOf)),
        noise_(noise),
        late_(late),
        random_(seed) {}

  void call() {
    const int option = choice().option();
    std::uniform_real_distribution<double> disturbed(1 - noise_, 1 + noise_), late(0, late_);
    const double time = timeOf_(option, calls_) * disturbed(random_);
    spent_ += time;
    const std::size_t last = calls_++ % choices_.size();
    std::size_t due = 0;
    for (std::size_t rank = 0; rank < choices_.size(); ++rank) {
      ASSERT_EQ(choices_[rank].option(), option) << "call " << calls_;
      due += choices_[rank].record(rank == last ? time : time * (1 + late(random_))) ? 1 : 0;
    }
    ran_.push_back(option);
    ASSERT_EQ(due % choices_.size(), 0u) << "all agree after the same call";
    if (due > 0) agree();
  }
  void calls(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count && !testing::Test::HasFatalFailure(); ++i) call();
  }
  /// Until an exploration is over, or so many.
  void callsUntilExplored(int most) {
    const auto before = switches_ + kept_;
    for (int i = 0; i < most && switches_ + kept_ == before; ++i) call();
    EXPECT_GT(switches_ + kept_, before) << most << " calls were too few";
  }

  const CallTuner& choice() const { return choices_.front(); }
  int settled() const { return choice().settled().option; }
  const std::vector<int>& ran() const { return ran_; }
  /// How many of the last calls ran this one.
  std::ptrdiff_t ranOf(int option, std::ptrdiff_t last) const {
    return std::count(ran_.end() - last, ran_.end(), option);
  }
  double spent() const { return spent_; }  // seconds
  int agreements() const { return agreements_; }
  int switches() const { return switches_; }

 private:
  void agree() {
    ++agreements_;
    for (std::size_t i = 0; i < choices_.front().window().size(); ++i) {
      double least = choices_.front().window()[i];
      for (CallTuner& choice : choices_) least = std::min(least, choice.window()[i]);
      for (CallTuner& choice : choices_) choice.window()[i] = least;
    }
    std::vector<CallTuner::Event> events;
    for (CallTuner& choice : choices_) events.push_back(choice.agree());
    EXPECT_EQ(std::ranges::count(events, events.front()), std::ssize(events));
    if (events.front() == CallTuner::Event::switched) ++switches_;
    if (events.front() == CallTuner::Event::kept) ++kept_;
  }

  std::vector<CallTuner> choices_;
  TimeOf timeOf_;
  double noise_, late_;
  std::mt19937 random_;
  std::uint64_t calls_ = 0;
  std::vector<int> ran_;
  double spent_ = 0;
  int agreements_ = 0, switches_ = 0, kept_ = 0;
};

}  // namespace tacc::test
