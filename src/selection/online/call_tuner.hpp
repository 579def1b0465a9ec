// Which of several options the calls of one kind and size run, as measured while the job runs.
//
// Where links decide how long a call takes, the model is right until a link changes. So nothing is tried there while
// calls take what they took before. When they do not, the options are tried, one call each, and the best one stays;
// later, ever more rarely, what the model chose is tried again, as the link may have recovered. Of short calls the
// model knows little: they take what processors and the scheduler take. There the options are tried after the first
// calls, and the best of them again from time to time.
//
// Every trial is a call of the program that does real work. Nothing here looks at a clock or talks to anybody. All
// ranks of a communicator feed the same sequence of calls; at calls that follow from agreed values alone, the times
// since the last agreement are replaced by values that are equal on all ranks, and only these decide. So all ranks run
// the same option in the same call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tacc {

class CallTuner {
 public:
  /// Links decide how long the calls take, or processors do: of short calls. These overlap where ranks that are done
  /// with one go on to the next ones before others are.
  enum class Kind : std::uint8_t { ofLinks, shortCalls, overlapping };
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

  /// Values of an agreement at most, and so options that an exploration tries.
  static constexpr std::size_t mostTimes = 16;

  /// By so many calls a rank of a host may be ahead of another one where their times are looked at. Of calls that
  /// overlap as many are timed at once: they begin while those before them are under way; fewer may all be waited for
  /// in one of them.
  static constexpr int callsAhead = 16;

  /// `options`: what the model chose, and then what may be tried, the most promising first. `expected`: the seconds
  /// that the model promises. `leastPeriod`: calls between two agreements while nothing is tried; where that may be
  /// short, a change of links is answered within 50 calls.
  CallTuner(Kind kind, std::vector<int> options, double expected, int leastPeriod);

  /// What the next call runs.
  int option() const noexcept { return schedule_[window_.size()]; }
  /// The call took so long on this rank. True: the ranks must agree before the next one.
  bool record(double seconds);
  /// This rank's times since the last agreement, to be replaced by what all ranks agree on.
  std::span<double> window() noexcept { return window_; }
  /// The window is agreed: decides about the calls to come.
  Event agree();

  /// Outside explorations option() is this one, and takes so long.
  const Known& settled() const noexcept { return settled_; }
  /// What is known of all others that were tried since the network has changed.
  const std::vector<Known>& others() const noexcept { return others_; }
  /// The cause of the last exploration, or of the one that goes on.
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
    int times;  // that an agreement is about, while nothing is tried
    int skipped, counted;
  };
  static Pace paceOf(Kind kind) noexcept;

  bool isShort() const noexcept { return kind_ != Kind::ofLinks; }
  double typicalOf(std::vector<double> times) const;
  Event judge();
  Event judgeShort(double measured);
  Event judgeLinks(double measured);
  /// The first of these options, each once.
  Event explore(Reason reason, double measured, double expected, const std::vector<int>& options);
  Event compare();
  Event settle();
  void learn(const Trial& trial);
  /// The calls until the next agreement.
  void schedule();
  int skipped() const noexcept;

  Kind kind_;
  std::vector<int> options_;
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
