#include "comm/dynamic_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "selection/network_selection.hpp"
#include "selection/network_suspects.hpp"

namespace tacc {
namespace {

constexpr double affordable = 0.01;  // of the time of calls, that agreeing may cost
/// Of short calls, which it disturbs more than the model knows, it is a quarter of that if the period is not too long.
constexpr double rarer = 4;
constexpr std::size_t agreedBytes = 8 * DynamicChoice::mostTimes;
/// Shorter calls take what processors and the scheduler take more than what the network does, which the model knows.
constexpr double shortSeconds = 2e-3;
/// Longer calls agree at most so often. An agreement waits for the last rank and for what still is in the links'
/// queues: after calls of 9 ms it takes 0.3 to 1.5 ms, several times its price, and one after every fourth of them cost
/// 2 %.
constexpr double leastSecondsBetween = 0.25;
constexpr double longestPeriodOfLong = 16;  // calls, by the price; where it must be longer, calls are not timed
/// Of calls up to this the bytes that links let pass at once are a good part, after others' calls too.
constexpr double burstySeconds = 20e-3;
/// Prices of algorithms that may be the fastest for such calls, to the least of all.
constexpr double rivalling = 3;
/// The same for those that send at most two thirds of the messages of the one with the least price: where processors
/// are shared, each message costs all ranks.
constexpr double rivallingOfFew = 8, few = 2.0 / 3;
constexpr int mostRanksCounted = 64;    // whose plans are written for counting
constexpr int longestPeriod = 1 << 14;  // calls; of short ones
/// Means of six calls of 8 bytes differ by a fifth from one handful to the next.
constexpr double veryShortSeconds = 5e-4;
constexpr int countedOfShort = 6, countedOfVeryShort = 12;
/// Of broadcasts and reductions to a root one ends while the next ones are under way: of six, the latency of the last
/// one would be a good part, and chains take a while to fill.
constexpr int countedOfRooted = 32;
constexpr std::size_t leastBytes = 64;
/// A rank that computes between calls makes the others wait, in all of them; then the least of the times counts.
constexpr double outOfStep = 1.2;
/// Where twice the bytes take so much longer, links let the first calls of a trial pass at once, and those calls fill
/// pipelines: of calls in a row of 8 KiB the first came down a chain of eight hosts after 20 ms, the others every 0.34.
constexpr double growthWithBytes = 1.4;
constexpr int fillingOfLongMessages = 8;

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

/// By the algorithms' numbers.
std::vector<double> secondsOf(const std::vector<NetworkCandidate>& candidates) {
  std::vector<double> seconds(algorithms().size());
  for (const NetworkCandidate& candidate : candidates)
    if (candidate.isPossible) seconds[static_cast<std::size_t>(numberOf(*candidate.algorithm))] = candidate.seconds;
  return seconds;
}

int countedOf(Collective collective, double seconds) {
  if (!needsAll(collective)) return countedOfRooted;
  return seconds <= veryShortSeconds ? countedOfVeryShort : countedOfShort;
}

/// Of all ranks together.
double messagesOf(const Algorithm& algorithm, const PlanRequest& request) {
  std::size_t messages = 0;
  const auto isMessage = [](const Operand& operand) { return operand.kind == Operand::Kind::peer; };
  for (const RankPlan& rank : algorithm.make(request).ranks)
    for (const Step& step : rank.steps)
      messages += static_cast<std::size_t>(std::ranges::count_if(step.destinations, isMessage));
  return static_cast<double>(messages);
}

/// Those with prices near the least, the cheapest first, and those with few messages.
std::vector<int> rivalsOf(const std::vector<NetworkCandidate>& candidates, const PlanRequest& request) {
  std::vector<const NetworkCandidate*> possible;
  for (const NetworkCandidate& candidate : candidates)
    if (candidate.isPossible) possible.push_back(&candidate);
  std::ranges::stable_sort(possible, {}, &NetworkCandidate::seconds);
  const double least = possible.front()->seconds;
  const bool counts = request.ranks <= mostRanksCounted;
  const double most = counts ? few * messagesOf(*possible.front()->algorithm, request) : 0;
  std::vector<int> rivals;
  for (const NetworkCandidate* candidate : possible)
    if (candidate->seconds <= rivalling * least ||
        (counts && candidate->seconds <= rivallingOfFew * least && messagesOf(*candidate->algorithm, request) <= most))
      rivals.push_back(numberOf(*candidate->algorithm));
  return rivals;
}

std::string describeTrials(const DynamicChoice& choice) {
  std::string text;
  for (const DynamicChoice::Trial& trial : choice.trials())
    if (trial.count > 0)
      text += fmt::format("{}{} {:.4g} ms", text.empty() ? "" : ", ", algorithmOf(trial.option).name,
                          trial.typical() * 1e3);
  return text.empty() ? "no times yet" : text;
}

/// What led to the last exploration.
std::string describeReason(const DynamicChoice& choice) {
  if (choice.reason() == DynamicChoice::Reason::routine || choice.reason() == DynamicChoice::Reason::rivals)
    return std::string(nameOf(choice.reason()));
  return fmt::format("{} was {}: measured {:.4g} ms, expected {:.4g} ms", algorithmOf(choice.before()).name,
                     nameOf(choice.reason()), choice.measured() * 1e3, choice.expectedBefore() * 1e3);
}

}  // namespace

DynamicSelection::DynamicSelection(NetworkChooser& hosts, double nodeSeconds)
    : agreementSeconds_(hosts.explain(Collective::allReduce, agreedBytes).front().seconds + nodeSeconds) {}

DynamicSelection::Key DynamicSelection::keyOf(const NetworkChooser& chooser, Collective collective, std::size_t bytes,
                                              int lanes) noexcept {
  return {&chooser, collective, sizeClassOf(bytes), lanes};
}

void DynamicSelection::begin() noexcept {
  isAsked_ = false;
  pending_ = nullptr;
  start_ = Clock::now();
}

DynamicSelection::Class DynamicSelection::makeClass(NetworkChooser& chooser, Collective collective, std::size_t bytes,
                                                    int lanes) {
  const std::size_t least = leastOf(sizeClassOf(bytes)) * static_cast<std::size_t>(lanes);
  const std::vector<NetworkCandidate> candidates = chooser.explain(collective, least);
  Class made{
      &chooser,    collective, lanes, least, secondsOf(candidates), secondsOf(chooser.explain(collective, 2 * least)),
      std::nullopt};
  const int chosen = numberOf(chooser.choose(collective, 0, bytes, {}));
  const double expected = made.least[static_cast<std::size_t>(chosen)];
  if (expected <= 0) return made;
  // Barriers before the times of rooted collectives cost as much as an agreement each, and as their calls overlap, one
  // call takes a third of its price.
  const double overhead = agreementSeconds_ * (needsAll(collective) ? 1 : 3 * (1 + DynamicChoice::timesOfShortCalls));
  const double period = std::ceil(overhead / (affordable * expected));
  const bool areLong = made.most[static_cast<std::size_t>(chosen)] >= growthWithBytes * expected;
  const int filling = areLong ? fillingOfLongMessages : 0;
  if (expected <= shortSeconds && period <= longestPeriod)
    made.choice.emplace(chosen, expected,
                        DynamicChoice::paceOfShortCalls(static_cast<int>(std::min(rarer * period, 1.0 * longestPeriod)),
                                                        countedOf(collective, expected), filling),
                        rivalsOf(candidates, chooser.request(collective, 0)));
  else if (period <= longestPeriodOfLong && needsAll(collective))
    made.choice.emplace(
        chosen, expected,
        DynamicChoice::paceOfLongCalls(static_cast<int>(std::clamp(leastSecondsBetween / expected, period,
                                                                   static_cast<double>(DynamicChoice::mostPeriod))),
                                       expected <= burstySeconds ? 1 : 0));
  return made;
}

const Algorithm& DynamicSelection::choose(NetworkChooser& chooser, Collective collective, int root, std::size_t bytes,
                                          int lanes) {
  const bool isFirst = !std::exchange(isAsked_, true);
  if (!isTimed(collective)) return chooser.choose(collective, root, bytes, {});
  const Key key = keyOf(chooser, collective, bytes, lanes);
  auto found = classes_.find(key);
  if (found == classes_.end()) found = classes_.emplace(key, makeClass(chooser, collective, bytes, lanes)).first;
  Class& mine = found->second;
  if (!mine.choice) return chooser.choose(collective, root, bytes, {});
  const int option = mine.choice->option();
  if (isFirst) {
    pending_ = &mine;
    const double least = mine.least[static_cast<std::size_t>(option)];
    const double most = mine.most[static_cast<std::size_t>(option)];
    // Calls of fewer bytes than the least class begins with cost as much as its shortest.
    const double share =
        std::max(1.0, static_cast<double>(bytes * static_cast<std::size_t>(lanes)) / static_cast<double>(mine.bytes));
    factor_ = least > 0 ? least / std::lerp(least, std::max(least, most), share - 1) : 1;
  }
  return algorithmOf(option);
}

taccRedOp_t DynamicSelection::agreement() const noexcept { return needsAll(pending_->collective) ? taccMin : taccMax; }

DynamicSelection::Next DynamicSelection::end() {
  if (pending_ == nullptr) return Next::nothing;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (pending_->choice->record(seconds * factor_)) {
    prepareTold();
    return Next::agreement;
  }
  return !needsAll(pending_->collective) && pending_->choice->beginsTime() ? Next::barrier : Next::nothing;
}

/// Not only the least of the ranks' times. Of a few calls in a row a rank may be up to a call behind the others at the
/// first and ahead at the last: the least flatters, the middle does not. Where links limit that is all by which ranks
/// differ; where processors do, the greatest is that of a rank which had to wait for one.
bool DynamicSelection::tellsMost() const noexcept {
  return needsAll(pending_->collective) && pending_->choice->mayBeOfLinks();
}

/// The agreement is one allreduce: the greatest of all ranks' times is the least of the negative ones.
void DynamicSelection::prepareTold() {
  const std::span<const double> window = pending_->choice->window();
  told_.assign(window.begin(), window.end());
  if (!tellsMost()) return;
  for (const double seconds : window) told_.push_back(-seconds);
}

void DynamicSelection::takeAgreed() {
  const std::span<double> window = pending_->choice->window();
  for (std::size_t i = 0; i < window.size(); ++i) {
    window[i] = told_[i];
    if (tellsMost() && pending_->choice->isOfLinks(told_[i]))
      window[i] = std::min((told_[i] - told_[window.size() + i]) / 2, outOfStep * told_[i]);
  }
}

std::vector<int> DynamicSelection::propose(const Class& of, int current, double ratio) const {
  NetworkQuestion question;
  question.request = {of.collective, of.chooser->ranks(), 0, of.chooser->groups(), {}};
  question.bytes = static_cast<double>(of.bytes);
  question.leastChunk = static_cast<double>(of.chooser->messageBytes(of.collective, of.bytes, 1));
  std::vector<int> numbers;
  for (const Algorithm* algorithm : suggestAlgorithms(question, of.chooser->machine(), algorithmOf(current), ratio))
    numbers.push_back(numberOf(*algorithm));
  return numbers;
}

std::string DynamicSelection::agree() {
  takeAgreed();
  DynamicChoice& choice = *pending_->choice;
  const DynamicChoice::Event event =
      choice.agree([this](int current, double ratio) { return propose(*pending_, current, ratio); });
  const bool begins = event == DynamicChoice::Event::exploring && choice.since() == choice.calls();
  if (event == DynamicChoice::Event::none || (event == DynamicChoice::Event::exploring && !begins)) return "";
  const std::string what = fmt::format("{} of {} bytes and more, after {} calls: ", nameOf(pending_->collective),
                                       pending_->bytes, choice.calls());
  if (begins) return what + describeReason(choice) + "; others are tried";
  return what + describeTrials(choice) +
         fmt::format("; {} {}", algorithmOf(choice.settled()).name,
                     event == DynamicChoice::Event::switched ? "takes over" : "stays");
}

const DynamicSelection::Class* DynamicSelection::find(const NetworkChooser& chooser, Collective collective,
                                                      std::size_t bytes, int lanes) const {
  const auto found = classes_.find(keyOf(chooser, collective, bytes, lanes));
  return found == classes_.end() || !found->second.choice ? nullptr : &found->second;
}

const Algorithm* DynamicSelection::settled(const NetworkChooser& chooser, Collective collective, std::size_t bytes,
                                           int lanes) const {
  const Class* of = find(chooser, collective, bytes, lanes);
  return of == nullptr ? nullptr : &algorithmOf(of->choice->settled());
}

std::string DynamicSelection::explain(const NetworkChooser& chooser, Collective collective, std::size_t bytes,
                                      int lanes) const {
  const Class* of = find(chooser, collective, bytes, lanes);
  if (of == nullptr) return "";
  const DynamicChoice& choice = *of->choice;
  std::string text = fmt::format("dynamic: {} calls, {} takes {:.4g} ms", choice.calls(),
                                 algorithmOf(choice.settled()).name, choice.expected() * 1e3);
  if (choice.explorations() > 0)
    text += fmt::format("; explored {} time{}, last after {} calls ({}): {}", choice.explorations(),
                        choice.explorations() == 1 ? "" : "s", choice.since(), describeReason(choice),
                        describeTrials(choice));
  return text + "\n";
}

}  // namespace tacc
