#include "comm/cluster/online_tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/default_arithmetic.hpp"

namespace tacc {
namespace {

/// Of the time of calls, that agreeing may cost by its price. It waits for the last rank and for what still is in the
/// links' queues, so beside calls of some milliseconds it takes several times that.
constexpr double affordable = 0.0025;
/// Calls in a row that overlap take such a share of the price of each at least.
constexpr double shareOfOverlapping = 0.1;
constexpr std::size_t agreedBytes = 8 * CallTuner::mostTimes;
/// Longer calls take what the network does, and those of which twice the bytes take so much longer: three quarters of
/// their price are bytes on links. The model knows links, but not processors and schedulers.
constexpr double shortSeconds = 2e-3, growthWithLinks = 1.75;
/// Prices of algorithms that may be the fastest, to the least of all. Of short calls: where processors are shared each
/// message costs all ranks, and trees have a third of the others' at up to seven times the price. Of the others: with
/// less, the best one of the network with a slow link is missed more often than its trial would cost
/// (tests/selection/dynamic_links_test.cpp).
constexpr double rivallingShort = 7, rivallingOfLinks = 2.5;
constexpr std::size_t leastBytes = 64;

/// All ranks need all others' data, so none can be done long before the others.
bool needsAll(Collective collective) {
  return collective == Collective::allReduce || collective == Collective::allGather ||
         collective == Collective::reduceScatter;
}

bool isTimed(Collective collective) {
  return needsAll(collective) || collective == Collective::broadcast || collective == Collective::reduce;
}

int numberOf(const Algorithm& algorithm) { return static_cast<int>(&algorithm - algorithms().data()); }
const Algorithm& algorithmOf(int number) { return algorithms()[static_cast<std::size_t>(number)]; }

int sizeClassOf(std::size_t bytes) noexcept { return static_cast<int>(std::bit_width(std::max(bytes, leastBytes))); }
std::size_t leastOf(int sizeClass) noexcept { return std::size_t{1} << (sizeClass - 1); }

std::string describeTimes(const CallTuner& choice) {
  const auto describe = [](const CallTuner::Known& known) {
    return fmt::format("{} {:.4g} ms", algorithmOf(known.option).name, known.seconds * 1e3);
  };
  std::string text = describe(choice.settled());
  for (const CallTuner::Known& other : choice.others()) text += ", " + describe(other);
  return text;
}

std::string describe(const CallTuner::Cause& cause) {
  return fmt::format("{} {}: measured {:.4g} ms, expected {:.4g} ms", algorithmOf(cause.before).name,
                     CallTuner::reasons[static_cast<std::size_t>(cause.reason)], cause.measured * 1e3,
                     cause.expected * 1e3);
}

}  // namespace

OnlineTuner::OnlineTuner(NetworkSelector& all)
    : agreementSeconds_(all.explain(Collective::allReduce, 0, agreedBytes).front().seconds) {}

std::vector<int> OnlineTuner::optionsOf(CallTuner::Kind kind, const Algorithm& chosen,
                                        const std::vector<NetworkCandidate>& candidates) {
  const double rivalling = kind == CallTuner::Kind::ofLinks ? rivallingOfLinks : rivallingShort;
  std::vector<int> options = {numberOf(chosen)};
  for (const NetworkCandidate& candidate : candidates)
    if (candidate.isPossible && candidate.seconds <= rivalling * candidates.front().seconds)
      options.push_back(numberOf(*candidate.algorithm));
  return options;
}

OnlineTuner::Key OnlineTuner::keyOf(const NetworkSelector& selector, Collective collective,
                                    std::size_t bytes) noexcept {
  return {&selector, collective, sizeClassOf(bytes)};
}

void OnlineTuner::begin() noexcept {
  isAsked_ = false;
  pending_ = nullptr;
  start_ = Clock::now();
}

OnlineTuner::Class OnlineTuner::makeClass(NetworkSelector& selector, Collective collective, int root,
                                          std::size_t bytes) {
  const std::size_t least = leastOf(sizeClassOf(bytes));
  const std::vector<NetworkCandidate> candidates = selector.explain(collective, root, least);
  const double expected = candidates.front().seconds;
  const Algorithm& chosen = selector.choose(collective, root, bytes, {});
  if (expected <= 0) return {collective, least, 1, numberOf(chosen), std::nullopt};
  const double growth = selector.explain(collective, root, 2 * least).front().seconds / expected;
  Class made{collective, least, growth, numberOf(chosen), std::nullopt};
  const double taken = needsAll(collective) ? expected : shareOfOverlapping * expected;
  const int period = static_cast<int>(agreementSeconds_ / (affordable * taken));
  // Of a few bytes links have no part, though they are priced as the least class.
  const bool ofLinks = bytes >= leastBytes && made.growth >= growthWithLinks;
  const auto kind = expected > shortSeconds || ofLinks ? CallTuner::Kind::ofLinks
                    : needsAll(collective)             ? CallTuner::Kind::shortCalls
                                                       : CallTuner::Kind::overlapping;
  if (kind != CallTuner::Kind::ofLinks || needsAll(collective))
    made.choice.emplace(kind, optionsOf(kind, chosen, candidates), expected, period);
  return made;
}

const Algorithm& OnlineTuner::choose(NetworkSelector& selector, Collective collective, int root, std::size_t bytes) {
  const DefaultArithmetic arithmetic;
  const bool isFirst = !std::exchange(isAsked_, true);
  if (!isTimed(collective)) return selector.choose(collective, root, bytes, {});
  const Key key = keyOf(selector, collective, bytes);
  auto found = classes_.find(key);
  if (found == classes_.end()) found = classes_.emplace(key, makeClass(selector, collective, root, bytes)).first;
  Class& mine = found->second;
  if (!mine.choice) return selector.choose(collective, root, bytes, {});
  const int option = mine.choice->option();
  if (isFirst) {
    pending_ = &mine;
    // Calls of fewer bytes than the least class begins with cost as much as its shortest.
    const double share = std::max(1.0, static_cast<double>(bytes) / static_cast<double>(mine.bytes));
    factor_ = 1 / std::lerp(1.0, std::max(1.0, mine.growth), share - 1);
  }
  // What the model chose may be another one from each root.
  return option == mine.model ? selector.choose(collective, root, bytes, {}) : algorithmOf(option);
}

taccRedOp_t OnlineTuner::agreement() const noexcept { return needsAll(pending_->collective) ? taccMin : taccMax; }

bool OnlineTuner::end() {
  if (pending_ == nullptr) return false;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return pending_->choice->record(seconds * factor_);
}

std::string OnlineTuner::agree() {
  const DefaultArithmetic arithmetic;
  CallTuner& choice = *pending_->choice;
  const CallTuner::Event event = choice.agree();
  if (event == CallTuner::Event::none || event == CallTuner::Event::goesOn) return "";
  const std::string what = fmt::format("{} of {} bytes and more, after {} calls: ", nameOf(pending_->collective),
                                       pending_->bytes, choice.calls());
  if (event == CallTuner::Event::begun) return what + describe(choice.cause()) + "; others are tried";
  return what + describeTimes(choice) +
         fmt::format("; {} {}", algorithmOf(choice.settled().option).name,
                     event == CallTuner::Event::switched ? "takes over" : "stays");
}

const OnlineTuner::Class* OnlineTuner::find(const NetworkSelector& selector, Collective collective,
                                            std::size_t bytes) const {
  const auto found = classes_.find(keyOf(selector, collective, bytes));
  return found == classes_.end() || !found->second.choice ? nullptr : &found->second;
}

const Algorithm* OnlineTuner::settled(const NetworkSelector& selector, Collective collective, std::size_t bytes) const {
  const Class* of = find(selector, collective, bytes);
  if (of == nullptr || of->choice->settled().option == of->model) return nullptr;
  return &algorithmOf(of->choice->settled().option);
}

std::string OnlineTuner::explain(const NetworkSelector& selector, Collective collective, std::size_t bytes) const {
  const Class* of = find(selector, collective, bytes);
  if (of == nullptr) return "";
  const CallTuner& choice = *of->choice;
  std::string text = fmt::format("dynamic: {} calls, {} takes {:.4g} ms", choice.calls(),
                                 algorithmOf(choice.settled().option).name, choice.settled().seconds * 1e3);
  if (choice.explorations() > 0)
    text += fmt::format("; explored {} time{}, last after {} calls ({}): {}", choice.explorations(),
                        choice.explorations() == 1 ? "" : "s", choice.cause().since, describe(choice.cause()),
                        describeTimes(choice));
  return text + "\n";
}

}  // namespace tacc
