#include "support/turns.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>
#include <optional>
#include <tuple>

namespace tacc::tools {
namespace {

using Order = std::vector<std::size_t>;

// Whoever runs first of all in a process finds fresh memory and a core that has idled, and is not judged by that alone.
constexpr int leastRounds = 2;
constexpr double timesHopeless = 4;
constexpr std::size_t mostCompared = 6;  // 720 orders are compared for each repetition

/// How often each followed each, and how often each was in each place.
class Past {
 public:
  explicit Past(std::size_t contestants)
      : contestants_(contestants), followed_(contestants * contestants), placed_(contestants * contestants) {}

  bool allows(const Order& order) const { return last_ != order.front() || contestants_ == 1; }

  /// What the order adds to the sum of squares; the least keeps the counts even.
  std::size_t unevenness(const Order& order) const {
    std::size_t follows = 0, places = 0;
    auto before = last_;
    for (std::size_t place = 0; place < contestants_; ++place) {
      if (before) follows += 2 * followed_[at(*before, order[place])] + 1;
      places += placed_[at(place, order[place])];
      before = order[place];
    }
    return follows * followWeight + places;
  }

  /// Who of `left` is to come next, at `place`; looks no further ahead.
  std::size_t nextOf(const Order& left, std::optional<std::size_t> before, std::size_t place) const {
    const auto weight = [&](std::size_t contestant) {
      const std::size_t follows = before ? followed_[at(*before, contestant)] : 0;
      const bool isSame = before == contestant;
      return std::tuple(isSame, follows, placed_[at(place, contestant)]);
    };
    return *std::ranges::min_element(left, {}, weight);
  }
  std::optional<std::size_t> last() const { return last_; }

  void add(const Order& order) {
    for (std::size_t place = 0; place < contestants_; ++place) {
      if (last_) ++followed_[at(*last_, order[place])];
      ++placed_[at(place, order[place])];
      last_ = order[place];
    }
  }

 private:
  /// Places decide only between orders that are alike otherwise.
  static constexpr std::size_t followWeight = 1 << 20;

  std::size_t at(std::size_t row, std::size_t column) const { return row * contestants_ + column; }

  std::size_t contestants_;
  std::vector<std::size_t> followed_, placed_;
  std::optional<std::size_t> last_;
};

/// The least; of processor times one that an eighth of them are below. Where a hypervisor takes processors away, the
/// kernel takes that off a thread's time later, off whatever runs then: the shortest of many times may even be none.
double shortOf(std::vector<double>& times, bool areProcessorTimes) {
  if (!areProcessorTimes) return *std::ranges::min_element(times);
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 8);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

Order evenOrder(const Past& past, std::size_t contestants) {
  Order order(contestants);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::optional<Order> best;
  do {
    if (past.allows(order) && (!best || past.unevenness(order) < past.unevenness(*best))) best = order;
  } while (std::next_permutation(order.begin(), order.end()));
  return *best;
}

/// Of many: each the one that followed the one before it the least often.
Order greedyOrder(const Past& past, std::size_t contestants) {
  Order left(contestants), order;
  std::iota(left.begin(), left.end(), std::size_t{0});
  auto before = past.last();
  while (!left.empty()) {
    order.push_back(past.nextOf(left, before, order.size()));
    before = order.back();
    std::erase(left, *before);
  }
  return order;
}

}  // namespace

std::vector<std::vector<std::size_t>> turnsOf(std::size_t contestants, int repetitions) {
  std::vector<Order> turns;
  Past past(contestants);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    turns.push_back(contestants <= mostCompared ? evenOrder(past, contestants) : greedyOrder(past, contestants));
    past.add(turns.back());
  }
  return turns;
}

void timeInTurn(std::vector<Timed>& contestants, double seconds, bool processorTime) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto now = [processorTime] {
    timespec time{};
    clock_gettime(processorTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const auto timeThrice = [&](const Timed& timed, std::vector<double>& times) {
    for (int i = 0; i < 3; ++i) {
      const double begin = now();
      timed.run();
      const double end = now();
      if (i > 0) times.push_back(timed.ownSeconds ? timed.ownSeconds() : end - begin);
    }
  };
  const Timed nothing{[] {}};
  std::vector<double> timesOfNothing;
  std::vector<std::vector<double>> times(contestants.size());
  for (int round = 0; round < leastRounds || std::chrono::duration<double>(Clock::now() - start).count() < seconds;
       ++round) {
    timeThrice(nothing, timesOfNothing);
    const double hopeless = timesHopeless * std::ranges::min_element(contestants, {}, &Timed::seconds)->seconds;
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      const std::size_t which = round % 2 == 0 ? i : contestants.size() - 1 - i;
      Timed& contestant = contestants[which];
      if (contestant.seconds > hopeless) continue;
      timeThrice(contestant, times[which]);
      contestant.seconds = shortOf(times[which], processorTime);
    }
  }
  // Those that take their time themselves read a clock too.
  if (std::ranges::any_of(contestants, [](const Timed& one) { return one.ownSeconds != nullptr; })) return;
  constexpr double leastPart = 0.1;  // left of a time that is mostly the clock's
  const double ofClock = shortOf(timesOfNothing, processorTime);
  for (Timed& contestant : contestants)
    contestant.seconds = std::max(leastPart * contestant.seconds, contestant.seconds - ofClock);
}

}  // namespace tacc::tools
