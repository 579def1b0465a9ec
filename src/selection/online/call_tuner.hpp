// Which of several options the calls of one kind and size run, as measured while the job runs.
//
// Where links decide how long a call takes, the model is right until a link changes. So nothing is tried there while
// calls take what they took before. When they do not, what might be better on the changed network is tried for a few
// calls each, and the best one stays; later, ever more rarely, what the model chose is tried again, as the link may
// have recovered. Of short calls the model knows little: they take what processors and the scheduler take. There all
// options of which the model is not sure are tried, and the best of them again from time to time.
//
// Every trial is a call of the program that does real work. Nothing here looks at a clock or talks to anybody. All
// ranks of a communicator feed the same sequence of calls; at calls that follow from agreed values alone, the times
// since the last agreement are replaced by values that are equal on all ranks, and only these decide. So all ranks run
// the same option in the same call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace tacc {

class CallTuner {
 public:
  /// Options to try besides `current`, the most promising first. `ratio`: how many times as long as expected calls
  /// take. Must be equal on all ranks.
  using Propose = std::function<std::vector<int>(int current, double ratio)>;

  enum class Reason : std::uint8_t { rivals, slower, faster, routine };
  /// For messages, after the option's name.
  static constexpr std::array<std::string_view, 4> reasons = {"is one of several with nearly the same price",
                                                              "was slower than expected", "was faster than expected",
                                                              "was compared again as a routine"};
  /// What an agreement led to.
  enum class Event : std::uint8_t { none, begun, goesOn, kept, switched };

  /// What an option takes.
  struct Known {
    int option;
    double seconds;
    bool isOwn;  // in its own calls in a row; else in trials, or by the model
  };
  /// What led to an exploration.
  struct Cause {
    Reason reason;
    int before;                 // the option that was settled
    double measured, expected;  // seconds
    std::uint64_t since;        // calls of this choice until it began
  };

  /// Values of an agreement at most.
  static constexpr std::size_t mostTimes = 16;

  /// `option` is what the model chose, `expected` the seconds it promises. `leastPeriod`: calls between two agreements
  /// while nothing is tried; where that may be short, a change of links is answered within 50 calls. `rivals`: of short
  /// calls, what is tried against the option; empty: links decide how long these calls take. `overlap`: ranks that are
  /// done with a short call go on to the next ones before others are.
  CallTuner(int option, double expected, int leastPeriod, std::vector<int> rivals = {}, bool overlap = false);

  /// What the next call runs.
  int option() const noexcept { return schedule_[window_.size()]; }
  /// The call took so long on this rank. True: the ranks must agree before the next one.
  bool record(double seconds);
  /// This rank's times since the last agreement, to be replaced by what all ranks agree on.
  std::span<double> window() noexcept { return window_; }
  /// The window is agreed: decides about the calls to come.
  Event agree(const Propose& propose);

  /// Outside explorations option() is this one, and takes so long.
  const Known& settled() const noexcept { return settled_; }
  /// Of all others that were tried since the network has changed.
  const std::vector<Known>& others() const noexcept { return others_; }
  /// Of the last exploration, or of the one that goes on.
  const Cause& cause() const noexcept { return cause_; }
  std::uint64_t explorations() const noexcept { return explorations_; }
  std::uint64_t calls() const noexcept { return calls_; }

 private:
  struct Trial {
    int option;
    std::vector<double> times = {};
  };
  /// How calls are measured: a time is the mean of `counted` calls in a row, after `skipped` in a trial.
  struct Pace {
    int times;  // that an agreement is about
    int skipped, counted;
  };

  bool isShort() const noexcept { return !rivals_.empty(); }
  double typicalOf(std::vector<double> times) const;
  Event judge(const Propose& propose);
  Event judgeShort(double measured);
  Event judgeLinks(double measured, const Propose& propose);
  /// The first of these options, each once.
  Event explore(Reason reason, double measured, double expected, const std::vector<int>& options);
  /// The best that are known.
  Event review(Reason reason, double measured, double expected);
  Event compare();
  Event settle();
  void learn(const Trial& trial);
  /// The calls until the next agreement.
  void schedule();
  int skipped() const noexcept;

  int model_;  // what the model chose
  std::vector<int> rivals_;
  bool overlap_;
  Pace pace_;
  int period_;
  Known settled_;
  std::vector<Known> others_;
  std::vector<Trial> tried_;    // in the exploration that goes on; empty outside
  std::vector<int> schedule_;   // the option of each time until the next agreement
  std::vector<double> window_;  // what they took so far
  int made_ = 0;                // calls of the time that goes on
  double sum_ = 0;              // of those of them that count
  Cause cause_;
  std::uint64_t explorations_ = 0, calls_ = 0;
  int agreements_ = 0;    // since the last exploration
  int rest_ = 1;          // agreements until the next one at the earliest
  int untilRoutine_ = 2;  // until one without a reason
};

}  // namespace tacc
