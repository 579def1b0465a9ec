#include "simulator.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace tacc::test {
namespace {

constexpr Element notWritten = 0xEEEEEEEEEEEEEE00;
constexpr Element returned = 0xDDDDDDDDDDDDDD00;  // in the buffers of a rank that has left the call

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

}  // namespace

Simulator::Simulator(const SimulatedCall& call, unsigned seed)
    : call_(call), random_(seed), ranks_(static_cast<std::size_t>(call.plan.request.ranks)) {
  // Half of the runs let some ranks run as far ahead of the others as their waits allow.
  if (random_() % 2 == 0) {
    favour_.resize(ranks_.size());
    std::iota(favour_.begin(), favour_.end(), 0);
    std::shuffle(favour_.begin(), favour_.end(), random_);
  }
  for (int rank = 0; rank < call.plan.request.ranks; ++rank) listActions(rank);
  countReaders();
}

PerRank<Element> Simulator::run(const PerRank<Element>& inputs) {
  fillBuffers(inputs);
  PerRank<Element> outputs(ranks_.size());
  for (std::size_t running = ranks_.size(); running > 0;) {
    const int rank = pickRank();
    Rank& r = ranks_[rank];
    act(rank);
    if (r.next < r.actions.size()) continue;
    --running;
    checkInput(rank, inputs[rank]);
    outputs[rank] = r.output;
    std::ranges::fill(r.input, returned);
    std::ranges::fill(r.output, returned);
  }
  for (const auto& [pair, pipe] : pipes_)
    require(pipe.empty(), "rank " + std::to_string(pair.second) + " has not read all that it was given");
  for (const Rank& r : ranks_) {
    const auto untouched = [](Element e) { return e == returned; };
    require(std::ranges::all_of(r.input, untouched) && std::ranges::all_of(r.output, untouched),
            "the buffers of a rank that had returned were written");
  }
  return outputs;
}

/// The ticks as partition.hpp defines them, the youngest chunk first, and the clock as others see it: it may stay
/// behind while a rank has nothing to do, but not while it waits.
void Simulator::listActions(int rank) {
  const Schedule& s = call_.schedule;
  const Program& program = call_.programs[rank];
  auto& actions = ranks_[rank].actions;
  const auto publish = [&](std::uint32_t ticks) { actions.push_back({.kind = Action::Kind::publish, .ticks = ticks}); };
  for (std::uint32_t tick = 0; tick < s.ticks(); ++tick) {
    bool worked = false;
    for (std::uint32_t chunk = s.chunks; chunk-- > 0;) {
      for (std::uint32_t round = 0; round < program.rounds.size(); ++round) {
        const Round& work = program.rounds[round];
        if (s.tickOf(chunk, static_cast<int>(round)) != tick || (work.operations.empty() && work.before.empty()))
          continue;
        publish(tick);
        listRound(rank, work, chunk);
        worked = true;
      }
    }
    if (worked) publish(tick + 1);
  }
  publish(s.ticks());
  for (const Dependency& d : program.lastReaders)
    actions.push_back({.kind = Action::Kind::wait, .rank = d.rank, .ticks = s.tickOf(s.chunks - 1, d.round) + 1});
}

void Simulator::listRound(int rank, const Round& round, std::uint32_t chunk) {
  const Schedule& s = call_.schedule;
  auto& actions = ranks_[rank].actions;
  for (const Dependency& d : round.before)
    actions.push_back({.kind = Action::Kind::wait, .rank = d.rank, .ticks = s.tickOf(chunk, d.round) + 1});
  if (chunk >= s.depth)
    for (const Dependency& d : round.slotReaders)
      actions.push_back({.kind = Action::Kind::wait, .rank = d.rank, .ticks = s.tickOf(chunk - s.depth, d.round) + 1});
  for (const Operation& operation : round.operations)
    for (int piece = 0; piece < operation.blockCount; ++piece)
      for (const auto kind : {Action::Kind::load, Action::Kind::store})
        actions.push_back({.kind = kind, .operation = &operation, .piece = piece, .chunk = chunk});
}

void Simulator::countReaders() {
  for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].readers.resize(call_.programs[r].slots);
  for (const Program& program : call_.programs)
    for (const Round& round : program.rounds)
      for (const Operation& operation : round.operations)
        for (const Place& place : operation.sources)
          for (int b = 0; place.kind == Place::Kind::slot && b < operation.blockCount; ++b)
            ++ranks_[place.rank].readers.at(place.index + b);
}

void Simulator::fillBuffers(const PerRank<Element>& inputs) {
  const Plan& plan = call_.plan;
  const Schedule& s = call_.schedule;
  const auto elements = [&](int blocks) { return (isSplit() && blocks > 0 ? 1 : blocks) * call_.count; };
  for (int rank = 0; rank < plan.request.ranks; ++rank) {
    Rank& r = ranks_[rank];
    const Program& program = call_.programs[rank];
    r.input = inputs[rank];
    r.output.assign(elements(outputBlocksOf(plan, rank)), notWritten);
    r.scratch.resize(static_cast<std::size_t>(program.scratchBlocks) * s.live);
    r.slots.resize(static_cast<std::size_t>(program.slots) * s.depth);
    for (auto* cells : {&r.scratch, &r.slots})
      for (Cell& cell : *cells) cell.data.assign(s.blockStride / sizeof(Element), notWritten);
    if (!call_.inPlace[rank]) continue;
    if (isSplit() && inputBlocksOf(plan, rank) > 0 && inPlaceOutputOf(plan, rank, 0) >= 0) r.output = inputs[rank];
    for (int b = 0; !isSplit() && b < inputBlocksOf(plan, rank); ++b)
      if (const int alias = inPlaceOutputOf(plan, rank, b); alias >= 0)
        std::copy_n(r.input.data() + b * call_.count, call_.count, r.output.data() + alias * call_.count);
  }
}

bool Simulator::mayAct(int rank) const {
  const Rank& r = ranks_[rank];
  if (r.next == r.actions.size()) return false;
  const Action& action = r.actions[r.next];
  if (action.kind == Action::Kind::load) return !awaitsPipe(rank);
  return action.kind != Action::Kind::wait || ranks_[action.rank].clock >= action.ticks;
}

bool Simulator::awaitsPipe(int rank) const {
  const Rank& r = ranks_[rank];
  return std::ranges::any_of(r.actions[r.next].operation->sources, [&](const Place& place) {
    const auto pipe = pipes_.find({place.rank, rank});
    return place.kind == Place::Kind::pipe && (pipe == pipes_.end() || pipe->second.empty());
  });
}

const Element* Simulator::takeFromPipe(int rank, const Place& place, std::size_t length) {
  auto& pipe = pipes_.at({place.rank, rank});
  const Piped piped = pipe.front();
  pipe.pop_front();
  require(piped.length == length, "rank " + std::to_string(rank) + " reads " + std::to_string(length) +
                                      " elements where rank " + std::to_string(place.rank) + " gives " +
                                      std::to_string(piped.length));
  return piped.from;
}

int Simulator::pickRank() {
  for (const int rank : favour_)
    if (mayAct(rank)) return rank;
  std::vector<int> able;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (mayAct(static_cast<int>(r))) able.push_back(static_cast<int>(r));
  if (able.empty()) failStuck();
  return able[random_() % able.size()];
}

void Simulator::failStuck() const {
  std::string what = "the ranks are stuck:";
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].next == ranks_[r].actions.size()) continue;
    const Action& action = ranks_[r].actions[ranks_[r].next];
    what += " rank " + std::to_string(r) + " waits for tick " + std::to_string(action.ticks) + " of rank " +
            std::to_string(action.rank) + ", which shows " + std::to_string(ranks_[action.rank].clock) + ";";
  }
  throw std::runtime_error(what);
}

void Simulator::act(int rank) {
  Rank& r = ranks_[rank];
  const Action& action = r.actions[r.next++];
  switch (action.kind) {
    case Action::Kind::wait:
      break;
    case Action::Kind::publish:
      require(action.ticks >= r.clock, "a clock goes back");
      r.clock = action.ticks;
      break;
    case Action::Kind::load:
      load(rank, action);
      break;
    case Action::Kind::store:
      store(rank, action);
      break;
  }
}

/// The piece's first element in the vector (split) or in the block (stack).
std::size_t Simulator::firstOf(const Action& action) const {
  const std::size_t begin = std::min(call_.count, action.chunk * call_.schedule.chunkElements);
  const std::size_t elements = std::min(call_.schedule.chunkElements, call_.count - begin);
  if (!isSplit()) return begin;
  return begin + blockBegin(elements, call_.plan.blocks, action.operation->block + action.piece, sizeof(Element));
}

std::size_t Simulator::lengthOf(const Action& action) const {
  const std::size_t begin = std::min(call_.count, action.chunk * call_.schedule.chunkElements);
  const std::size_t elements = std::min(call_.schedule.chunkElements, call_.count - begin);
  if (!isSplit()) return elements;
  const int block = action.operation->block + action.piece;
  return begin + blockBegin(elements, call_.plan.blocks, block + 1, sizeof(Element)) - firstOf(action);
}

Element* Simulator::userMemory(int rank, bool isInput, const Action& action, const Place& place) {
  Rank& owner = ranks_[rank];
  int block = isSplit() ? 0 : place.index + action.piece;
  const int alias = isInput && call_.inPlace[rank] ? inPlaceOutputOf(call_.plan, rank, block) : -1;
  if (alias >= 0) block = alias;
  auto& memory = isInput && alias < 0 ? owner.input : owner.output;
  const std::size_t first = firstOf(action) + (isSplit() ? 0 : block * call_.count);
  require(first + lengthOf(action) <= memory.size(), "an operation leaves rank " + std::to_string(rank) + "'s buffer");
  return memory.data() + first;
}

Simulator::Cell& Simulator::cellOf(Rank& owner, const Place& place, const Action& action) {
  const bool isSlot = place.kind == Place::Kind::slot;
  const Schedule& s = call_.schedule;
  const Program& program = call_.programs[place.rank];
  const int perCopy = isSlot ? program.slots : program.scratchBlocks;
  require(place.index + action.piece < perCopy, "a slot or scratch block that the program does not have");
  require(lengthOf(action) * sizeof(Element) <= s.blockStride, "a block does not fit its slot");
  const std::size_t copy = action.chunk % (isSlot ? s.depth : s.live);
  return (isSlot ? owner.slots : owner.scratch)[copy * perCopy + place.index + action.piece];
}

void Simulator::load(int rank, const Action& action) {
  const Operation& operation = *action.operation;
  const std::size_t length = lengthOf(action);
  auto& sum = ranks_[rank].loaded;
  sum.assign(length, 0);
  for (const Place& place : operation.sources) {
    const Element* from = nullptr;
    const bool isInput = place.kind == Place::Kind::input || place.kind == Place::Kind::remoteInput;
    if (place.kind == Place::Kind::pipe) {
      from = takeFromPipe(rank, place, length);
    } else if (place.kind == Place::Kind::slot || place.kind == Place::Kind::scratch) {
      Cell& cell = cellOf(ranks_[place.rank], place, action);
      require(cell.chunk == action.chunk,
              "rank " + std::to_string(rank) + " reads chunk " + std::to_string(cell.chunk) + " for chunk " +
                  std::to_string(action.chunk) + " from rank " + std::to_string(place.rank));
      ++cell.reads;
      from = cell.data.data();
    } else {
      from = userMemory(place.rank, isInput, action, place);
    }
    for (std::size_t i = 0; i < length; ++i) sum[i] += from[i];
  }
  if (operation.sources.size() == 1) return;
  const auto p = static_cast<Element>(call_.plan.request.ranks);
  for (Element& e : sum) {
    require((contributionsOf(e) == p) == operation.completes,
            "an operation is not marked rightly as the completing one");
    if (operation.completes) e += completed;
  }
}

void Simulator::store(int rank, const Action& action) {
  const auto& data = ranks_[rank].loaded;
  for (const Place& place : action.operation->destinations) {
    if (place.kind == Place::Kind::pipe) {
      const Place& from = action.operation->sources.front();
      const bool isInput = from.kind == Place::Kind::input;
      pipes_[{rank, place.rank}].push_back({userMemory(rank, isInput, action, from), lengthOf(action)});
      continue;
    }
    if (place.kind != Place::Kind::slot && place.kind != Place::Kind::scratch) {
      std::ranges::copy(data, userMemory(place.rank, false, action, place));
      continue;
    }
    Cell& cell = cellOf(ranks_[place.rank], place, action);
    if (place.kind == Place::Kind::slot) {
      require(cell.chunk < 0 || cell.reads == ranks_[place.rank].readers[place.index + action.piece],
              "rank " + std::to_string(rank) + " writes chunk " + std::to_string(action.chunk) + " over chunk " +
                  std::to_string(cell.chunk) + ", which not all have read");
    }
    cell.chunk = action.chunk;
    cell.reads = 0;
    std::ranges::copy(data, cell.data.begin());
  }
}

void Simulator::checkInput(int rank, const std::vector<Element>& original) {
  const Plan& plan = call_.plan;
  for (int b = 0; b < (isSplit() ? std::min(1, inputBlocksOf(plan, rank)) : inputBlocksOf(plan, rank)); ++b) {
    if (call_.inPlace[rank] && inPlaceOutputOf(plan, rank, b) >= 0) continue;
    const auto first = static_cast<std::ptrdiff_t>(b * call_.count);
    require(std::equal(original.begin() + first, original.begin() + first + static_cast<std::ptrdiff_t>(call_.count),
                       ranks_[rank].input.begin() + first),
            "the input of rank " + std::to_string(rank) + " changed");
  }
}

}  // namespace tacc::test
