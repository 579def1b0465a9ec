// Which of several options the calls of one kind and size run, as measured while the job runs.
//
// A choice begins with what the model says and believes it as long as measurements agree. When they clearly depart,
// from the model or later from what the option took before, the next calls try other options: every one does real
// work, none is wasted. The best that was measured stays. Now and then, and only as often as it costs one call in a
// hundred, options are tried without such a reason, so that a link that became fast again is noticed.
//
// Of short calls the model knows little: they take what processors and the scheduler take. There the options whose
// prices are near one another are rivals, and the first calls try them all. What the scheduler does changes after some
// thousand calls, and with it which option is the fastest; so the best ones are tried again from time to time. Trials
// are calls among other options' calls, which can flatter; of the settled option counts what its own calls in a row
// take.
//
// Nothing here looks at a clock or talks to anybody. All ranks of a communicator feed the same sequence of calls; at
// calls that follow from agreed values alone, the times since the last agreement are replaced by values that are equal
// on all ranks, and only these decide. So all ranks run the same option in the same call.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tacc {

class DynamicChoice {
 public:
  /// Options to try besides `current`, the most promising first. `ratio`: how many times as long as expected calls
  /// take. Must be equal on all ranks.
  using Propose = std::function<std::vector<int>(int current, double ratio)>;

  enum class Reason : std::uint8_t { model, slower, faster, routine, rivals };
  /// What an agreement led to.
  enum class Event : std::uint8_t { none, exploring, kept, switched };

  /// An option that was tried in the last exploration.
  struct Trial {
    static constexpr std::size_t most = 64;
    int option;
    std::size_t count;  // of times
    std::array<double, most> times;

    /// The mean of the middle half of the times.
    double typical() const noexcept;
  };

  static constexpr std::size_t mostTimes = 16;  // in a window
  /// How calls are measured: a time is the mean of some calls in a row.
  struct Pace {
    int period;       // calls from one agreement to the next, while nothing is tried
    int times;        // that they tell, the last ones; at most mostTimes
    int skipped = 0;  // calls of a trial that do not count, as they connect and run beside others' calls before them
    int counted = 1;  // calls of which each time is the mean
    int filling = 0;  // the last ones of those skipped: ranks that wait for one another do so before them
  };
  static constexpr int leastPeriod = 4, mostPeriod = 64;
  /// Every call is timed by itself, and agreements are every `period` calls, leastPeriod to mostPeriod; the last
  /// mostTimes of these tell. In trials `skipped` calls of each option come before the one that counts.
  static Pace paceOfLongCalls(int period, int skipped = 0);
  static constexpr int timesOfShortCalls = 4;
  /// `counted` calls in a row make a time, after two, as eight processes that take turns on two cores are in step after
  /// a call or two, and `filling` more. Those are of calls that links may limit, and of links the model knows more than
  /// trials do: of rivals that are nearly alike the cheapest is taken.
  static Pace paceOfShortCalls(int period, int counted, int filling = 0);
  /// That an exploration tries, the current one included; rivals may be as many as a window has times.
  static constexpr std::size_t mostOptions = 7;

  /// `option` is what the model chose, `expected` the seconds it promises; `rivals` are tried against it first of all,
  /// if there are any: the one that is cheapest by the model comes first.
  DynamicChoice(int option, double expected, Pace pace, const std::vector<int>& rivals = {});

  /// What the next call runs.
  int option() const noexcept { return schedule_[window_.size()].option; }
  /// The call took so long on this rank. True: the ranks must agree before the next one.
  bool record(double seconds);
  /// The next call is the first of those that make a time, or fill the pipeline for them.
  bool beginsTime() const noexcept { return made_ == schedule_[window_.size()].skipped - pace_.filling; }
  /// This rank's times since the last agreement, to be replaced by what all ranks agree on; at most mostTimes.
  std::span<double> window() noexcept { return window_; }
  /// The window is agreed: decides about the calls to come.
  Event agree(const Propose& propose);

  /// Links may limit these calls: they are short, and their price grows with their bytes.
  bool mayBeOfLinks() const noexcept { return pace_.filling > 0; }
  /// They do where a call takes no longer than the model promises, which knows links alone.
  bool isOfLinks(double seconds) const noexcept { return mayBeOfLinks() && seconds <= 1.25 * price_; }
  /// Outside explorations option() is this.
  int settled() const noexcept { return current_; }
  /// Seconds that the settled option is expected to take: measured, at first the model's.
  double expected() const noexcept { return expected_; }
  // Of the last exploration, or of the one that goes on:
  Reason reason() const noexcept { return reason_; }
  double measured() const noexcept { return measured_; }              // what led to it
  double expectedBefore() const noexcept { return expectedBefore_; }  // what it was compared with
  int before() const noexcept { return before_; }                     // the option that was settled before it
  std::uint64_t since() const noexcept { return since_; }             // calls of this choice until it began
  const std::vector<Trial>& trials() const noexcept { return trials_; }
  std::uint64_t explorations() const noexcept { return explorations_; }
  std::uint64_t calls() const noexcept { return calls_; }

 private:
  /// betterOptions: of short calls, where one time of each does not tell which are the best.
  enum class Phase : std::uint8_t { settled, everyOption, betterOptions, bestOptions };
  /// Calls in a row that make one time.
  struct Turn {
    int option;
    int skipped, counted;
  };

  Event judge(const Propose& propose);
  /// `isReview`: the others were tried before, and what this one tells is added to that.
  void explore(Reason reason, double measured, const std::vector<int>& others, bool isReview);
  Event compare();
  Event compareShort();
  /// The trials of this phase, the best first; of short calls those that are too far behind are left out.
  std::vector<Trial> ranking() const;
  void keepOld(std::vector<Trial>& best, std::size_t room) const;
  Event settle();
  const Trial& bestOfFinalists() const;
  std::ptrdiff_t priceRank(int option) const { return std::ranges::find(rivals_, option) - rivals_.begin(); }
  /// What was typical of the trial; of short calls what is known of its option.
  double known(const Trial& trial) const;
  void learn();
  void planRoutine(double best);
  /// What an exploration that is due now tries.
  std::vector<int> others(bool isReview, double ratio, const Propose& propose) const;
  bool departs(double measured) const noexcept;
  void keepSettled();
  bool isOvertaken() const noexcept;
  void keepTrials();
  /// Each as often as `rounds` says, in turn, so that what disturbs one of them disturbs the others too.
  void tryOut(Phase phase, std::span<const Trial> trials, std::size_t rounds);
  void rest();
  int callsOfRest() const noexcept;
  void schedule(Phase phase, std::vector<Turn> turns);
  bool isShort() const noexcept { return pace_.counted > 1; }
  std::uint64_t callsOfTrial() const noexcept { return static_cast<std::uint64_t>(pace_.skipped + pace_.counted); }

  int current_;
  double expected_;
  double price_;  // what the model promised
  Pace pace_;
  std::vector<int> rivals_;  // the cheapest first
  bool isMeasured_ = false;  // what is expected; else it is the model's
  Phase phase_ = Phase::settled;
  int windows_ = 0;             // of the phase that are over
  std::vector<Turn> schedule_;  // what the calls until the next agreement run
  std::vector<double> window_;  // what they took so far
  int made_ = 0;                // calls of the turn that goes on
  double sum_ = 0;              // of what those of them took that count
  std::vector<double> recent_;  // the last agreed times of the settled option
  std::vector<Trial> trials_;
  struct Known {
    int option;
    double seconds;
    int agreements;  // on calls in a row while it was settled, of which these are the mean; 0: what its last trial took
  };
  std::vector<Known> known_;  // of every option that was tried
  /// The best of them, the fastest first.
  std::vector<Known> bestKnown(std::size_t most) const;

  Reason reason_ = Reason::model;
  bool isReview_ = false;
  double measured_ = 0, expectedBefore_ = 0;
  int before_;
  std::uint64_t since_ = 0, explorations_ = 0, calls_ = 0;
  std::uint64_t settledAt_ = 0;  // the call at which the last exploration ended
  std::uint64_t rest_ = 0;       // calls from there to the next one, whatever is measured
  std::uint64_t routine_;        // calls from there to one without a reason
  std::uint64_t reviews_ = 0;    // explorations without a reason since the last one with a reason
};

/// "slower than before" and the like, for messages.
std::string_view nameOf(DynamicChoice::Reason reason);

}  // namespace tacc
