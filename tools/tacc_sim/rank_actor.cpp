#include "rank_actor.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace tacc::sim {
namespace {

namespace sg = simgrid::s4u;

/// Seconds: what is nearer than this happens together.
constexpr double together = 1e-11;

std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

}  // namespace

RankActor::RankActor(const Script& script, int rank) : script_(script), steps_(script.traffic->steps[at(rank)]) {
  for (const TrafficStep& step : steps_) {
    for (const int message : step.receives) {
      receives_.push_back(message);
      incoming_[script.traffic->messages[at(message)].pair].left += at(script.chunks);
    }
  }
  std::ranges::sort(receives_);
  for (auto& [pair, incoming] : incoming_) {
    --incoming.left;
    comms_.push_back(script.pairs[at(pair)].mailbox->get_async<Token>(&incoming.landed));
    waits_.push_back({pair, false});
  }
}

void RankActor::run() {
  admit();
  while (completed_ < script_.chunks) {
    while (progress()) {
    }
    if (completed_ < script_.chunks) sleepUntilChange();
  }
}

bool RankActor::progress() {
  const bool delivered = deliver(), finished = finishWork(), began = beginWork();
  return retire() || delivered || finished || began;
}

bool RankActor::deliver() {
  bool moved = false;
  for (; !arrivals_.empty() && arrivals_.top().time <= sg::Engine::get_clock() + together; arrivals_.pop()) {
    const Token token = arrivals_.top().token;
    arrivedOf(token.chunk)[placeOf(token.message)] = 1;
    moved = true;
  }
  return moved;
}

bool RankActor::finishWork() {
  if (!isBusy_ || busyUntil_ > sg::Engine::get_clock() + together) return false;
  isBusy_ = false;
  for (Chunk& chunk : active_)
    if (chunk.number == busyChunk_) finishStep(chunk);
  return true;
}

/// Gives the CPU to the oldest chunk that can go on.
bool RankActor::beginWork() {
  if (isBusy_) return false;
  const auto chunk = std::ranges::find_if(active_, [this](const Chunk& one) { return isReady(one); });
  if (chunk == active_.end()) return false;
  const double seconds = steps_[chunk->step].seconds;
  if (seconds <= together) {
    finishStep(*chunk);
  } else {
    isBusy_ = true;
    busyUntil_ = sg::Engine::get_clock() + seconds;
    busyChunk_ = chunk->number;
  }
  return true;
}

void RankActor::finishStep(Chunk& chunk) {
  for (const int message : steps_[chunk.step].sends) {
    ++chunk.openSends;
    const int pair = script_.traffic->messages[at(message)].pair;
    std::deque<Token>& queue = outgoing_[pair];
    queue.push_back({message, chunk.number});
    if (queue.size() > 1) continue;
    comms_.push_back(startFirst(pair));
    waits_.push_back({pair, true});
  }
  ++chunk.step;
}

sg::CommPtr RankActor::startFirst(int pair) {
  const Token token = outgoing_[pair].front();
  const Pair& to = script_.pairs[at(pair)];
  const auto bytes = static_cast<std::uint64_t>(std::ceil(script_.traffic->messages[at(token.message)].bytes));
  sg::CommPtr comm = to.mailbox->put_init(std::make_unique<Token>(token).release(), bytes);  // the receiver deletes it
  comm->set_rate(to.bytesPerSecond);
  comm->start();
  return comm;
}

/// Lets the next chunks in when the oldest ones are over.
bool RankActor::retire() {
  bool moved = false;
  while (!active_.empty() && active_.front().step == steps_.size() && active_.front().openSends == 0) {
    arrived_.erase(active_.front().number);
    active_.pop_front();
    ++completed_;
    moved = true;
  }
  if (moved) admit();
  return moved;
}

void RankActor::admit() {
  for (; admitted_ < script_.chunks && admitted_ - completed_ < script_.window; ++admitted_)
    active_.push_back({admitted_, 0, 0});
}

void RankActor::sleepUntilChange() {
  double next = isBusy_ ? busyUntil_ : -1;
  if (!arrivals_.empty() && (next < 0 || arrivals_.top().time < next)) next = arrivals_.top().time;
  const double patience = next < 0 ? -1 : next - sg::Engine::get_clock();
  if (comms_.empty()) return sg::this_actor::sleep_for(patience);
  const ssize_t first = sg::Comm::wait_any_for(comms_, patience);
  if (first >= 0) complete(static_cast<std::size_t>(first));
}

/// The next message of the pair takes the place of one that is over.
void RankActor::complete(std::size_t wait) {
  const auto [pair, isSend] = waits_[wait];
  if (isSend) {
    std::deque<Token>& queue = outgoing_[pair];
    for (Chunk& chunk : active_)
      if (chunk.number == queue.front().chunk) --chunk.openSends;
    queue.pop_front();
    if (!queue.empty()) {
      comms_[wait] = startFirst(pair);
      return;
    }
  } else {
    Incoming& incoming = incoming_[pair];
    const std::unique_ptr<Token> token(incoming.landed);
    arrivals_.push({sg::Engine::get_clock() + script_.pairs[at(pair)].latency, *token});
    if (incoming.left > 0) {
      --incoming.left;
      comms_[wait] = script_.pairs[at(pair)].mailbox->get_async<Token>(&incoming.landed);
      return;
    }
  }
  comms_[wait] = comms_.back();
  waits_[wait] = waits_.back();
  comms_.pop_back();
  waits_.pop_back();
}

bool RankActor::isReady(const Chunk& chunk) {
  if (chunk.step == steps_.size()) return false;
  const std::vector<int>& needed = steps_[chunk.step].receives;
  if (needed.empty()) return true;
  const std::vector<char>& here = arrivedOf(chunk.number);
  return std::ranges::all_of(needed, [&](int message) { return here[placeOf(message)] != 0; });
}

std::size_t RankActor::placeOf(int message) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(receives_, message) - receives_.begin());
}

std::vector<char>& RankActor::arrivedOf(int chunk) {
  std::vector<char>& here = arrived_[chunk];
  if (here.empty()) here.resize(receives_.size());
  return here;
}

}  // namespace tacc::sim
