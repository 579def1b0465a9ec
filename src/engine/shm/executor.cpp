#include "engine/shm/executor.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "transports/shm/cpu_relax.hpp"

namespace tacc {

struct Executor::Context {
  const Program& program;
  const Schedule& schedule;
  const CallBuffers& buffers;
  const ElementWork& work;
};

namespace {

constexpr std::size_t sourceBounceBytes =
    64 * 1024;  // of one source read through the kernel; a few of them fit the L2 cache

constexpr std::size_t copiedTileBytes = 32 * 1024;  // fits the L1 or L2 cache beside what it is copied to

/// Of a block of a user's buffer: how long it is and where it begins, in elements. False: it is no such block.
bool findBlock(const std::vector<UnequalBlocks>& blocks, const Place& place, int offset, std::size_t& count,
               std::size_t& begin) {
  const UnequalBlocks& of = blocks[static_cast<std::size_t>(place.rank)];
  const BlockRow* row = nullptr;
  if (place.kind == Place::Kind::input || place.kind == Place::Kind::remoteInput) row = &of.send;
  if (place.kind == Place::Kind::output || place.kind == Place::Kind::remoteOutput) row = &of.receive;
  if (row == nullptr) return false;
  const auto index = static_cast<std::size_t>(place.index + offset);
  count = row->counts[index];
  begin = row->offsets[index];
  return true;
}

/// Ticks of a call until a round of its last chunk is over.
std::uint32_t ticksUntil(const Schedule& schedule, const Dependency& d) {
  return schedule.tickOf(schedule.chunks - 1, d.round) + 1;
}

bool isRemote(const Place& place) {
  return place.kind == Place::Kind::remoteInput || place.kind == Place::Kind::remoteOutput;
}

bool isPipe(const Place& place) { return place.kind == Place::Kind::pipe; }

}  // namespace

Executor::Executor(const NodeSegment& segment, int rank, Waiter& waiter, std::vector<int> processes, PagePipes& pipes)
    : segment_(segment),
      rank_(rank),
      waiter_(waiter),
      remote_(rank, waiter, std::move(processes)),
      pipes_(pipes),
      copies_(segment, rank, waiter, remote_),
      base_(segment.clock(rank).ticks.load(std::memory_order_relaxed)) {}

void Executor::run(const Program& program, const Schedule& schedule, const CallBuffers& buffers,
                   const ElementWork& work, std::uint32_t following) {
  const Context context{program, schedule, buffers, work};
  ringBegin_ = std::uint64_t{following} * schedule.chunks;
  if (program.scratchBlocks > 0) {
    const auto bytes = static_cast<std::size_t>(program.scratchBlocks) * schedule.live * schedule.blockStride;
    if (scratch_.size() < bytes) scratch_.resize(bytes);
  }
  Clock& own = segment_.clock(rank_);
  const std::uint32_t ticks = schedule.ticks();
  const std::uint32_t span = schedule.stretch * (schedule.rounds - 1);  // ticks from a chunk's first round to its last
  std::uint32_t published = 0;                                          // ticks that the others know of
  const auto publish = [&](std::uint32_t done) {
    if (published == done) return;
    waiter_.publish(own.ticks, base_ + done);
    published = done;
  };
  for (std::uint32_t tick = 0; tick < ticks; ++tick) {
    bool worked = false;
    // The youngest chunk first: its first round waits for nobody and gives the others time.
    const std::uint32_t youngest = std::min(tick / schedule.advance, schedule.chunks - 1);
    const std::uint32_t oldest = tick < span ? 0 : (tick - span + schedule.advance - 1) / schedule.advance;
    for (std::uint32_t chunk = youngest + 1; chunk-- > oldest;) {
      const std::uint32_t age = tick - schedule.advance * chunk;
      if (age % schedule.stretch != 0) continue;
      const Round& round = program.rounds[age / schedule.stretch];
      if (round.operations.empty() && round.before.empty()) continue;
      // Idle ticks are not published one by one, but somebody may wait for them: so before this rank waits itself.
      publish(tick);
      runRound(context, round, chunk);
      worked = true;
    }
    if (worked) publish(tick + 1);
  }
  publish(ticks);
  if (program.helpsReaders) helpReaders(context);
  for (const Dependency& d : program.lastReaders)
    pipes_.wait(segment_.clock(d.rank).ticks, base_ + ticksUntil(schedule, d), d.rank);
  base_ += ticks;
  waiter_.checkAfterReading();
}

void Executor::runRound(const Context& context, const Round& round, std::uint32_t chunk) {
  const Schedule& schedule = context.schedule;
  for (const Dependency& d : round.before)
    pipes_.wait(segment_.clock(d.rank).ticks, base_ + schedule.tickOf(chunk, d.round) + 1, d.rank);
  if (ringBegin_ + chunk >= schedule.depth)
    for (const Dependency& d : round.slotReaders)
      pipes_.wait(segment_.clock(d.rank).ticks, whenRead(schedule, chunk, d.round), d.rank);
  // Copies that others have a part in begin first: steps of one round do not meet (plan.hpp).
  auto next = round.operations.begin();
  const auto openMore = [&] {
    for (; next != round.operations.end() && copies_.hasRoom(); ++next)
      if (next->isShared) openCopy(context, *next, chunk);
  };
  openMore();
  for (const Operation& operation : round.operations)
    if (!operation.isShared) runOperation(context, operation, chunk);
  while (copies_.isAnyOpen()) {
    copies_.finish();
    openMore();
  }
}

void Executor::openCopy(const Context& context, const Operation& operation, std::uint32_t chunk) {
  forPieces(context, operation, chunk, [&](std::size_t elements) {
    const std::size_t bytes = elements * context.work.elementBytes;
    const int source = operation.sources[0].rank;
    if (bytes < SharedCopies::leastBytes || !copies_.hasRoom())
      remote_.read(source, destinations_[0], sources_[0], bytes);
    else
      copies_.open(context.work.collective, source, static_cast<const std::byte*>(sources_[0]),
                   static_cast<std::byte*>(destinations_[0]), bytes);
  });
}

void Executor::helpReaders(const Context& context) {
  // Where ranks take turns on cores, who reads wants this one. No copy is longer than all elements or a block.
  if (waiter_.policy().oversubscribed || context.work.count * context.work.elementBytes < SharedCopies::leastBytes)
    return;
  const CallBuffers& buffers = context.buffers;
  const std::array<OwnMemory, 2> memory{OwnMemory{buffers.send, buffers.sendBytes},
                                        OwnMemory{buffers.receive, buffers.receiveBytes}};
  constexpr int turnsPerLook = 64, turnsOfHelp = 8;
  int turns = 0;
  for (int looks = 0; looks < waiter_.policy().spins; ++looks) {
    bool isOver = true, hasHelped = false;
    int waitedFor = rank_;
    for (const Dependency& d : context.program.lastReaders) {
      if (Waiter::sees(segment_.clock(d.rank).ticks, base_ + ticksUntil(context.schedule, d))) continue;
      isOver = false;
      waitedFor = d.rank;
      hasHelped = copies_.help(d.rank, memory) || hasHelped;
    }
    if (isOver) return;
    turns += hasHelped ? turnsOfHelp : 1;
    if (hasHelped) looks = 0;
    if (turns >= turnsPerLook) {
      waiter_.lookAt(waitedFor, 0, [] { return true; });
      turns = 0;
    }
    if (!hasHelped) relaxCpu();
  }
}

std::uint32_t Executor::whenRead(const Schedule& schedule, std::uint32_t chunk, int round) const noexcept {
  const std::uint64_t before = ringBegin_ + chunk - schedule.depth;
  const auto callsAgo = static_cast<std::uint32_t>(ringBegin_ / schedule.chunks - before / schedule.chunks);
  return base_ - callsAgo * schedule.ticks() +
         schedule.tickOf(static_cast<std::uint32_t>(before % schedule.chunks), round) + 1;
}

void Executor::runOperation(const Context& context, const Operation& operation, std::uint32_t chunk) {
  forPieces(context, operation, chunk, [&](std::size_t elements) {
    if (isPipe(operation.destinations.front()))
      pipes_.give(operation.destinations.front().rank, sources_[0], elements * context.work.elementBytes);
    else if (operation.readsThroughKernel)
      combineThroughKernel(context, operation, elements);
    else
      combine(context, operation, elements);
  });
}

template <class Visit>
void Executor::forPieces(const Context& context, const Operation& operation, std::uint32_t chunk, const Visit& visit) {
  const Program& program = context.program;
  const Schedule& schedule = context.schedule;
  const CallBuffers& buffers = context.buffers;
  const ElementWork& work = context.work;
  const bool split = program.partition == Partition::split;
  const std::size_t size = work.elementBytes;
  const std::size_t begin = std::min(work.count, chunk * schedule.chunkElements);
  const std::size_t elements = std::min(schedule.chunkElements, work.count - begin);  // of the chunk

  const auto elementOf = [&](int block) { return begin + blockBegin(elements, program.blocks, block, size); };
  // Address of the place's block `operation.block + offset` (split), or `place.index + offset` (stack).
  const auto resolve = [&](const Place& place, int offset) -> std::byte* {
    const auto slot = static_cast<std::size_t>(place.index + offset);
    std::size_t element = split ? elementOf(operation.block + offset) : slot * work.count + begin;
    std::size_t length = 0, first = 0;
    if (work.blocks != nullptr && findBlock(*work.blocks, place, offset, length, first)) element = first + begin;
    const auto rank = static_cast<std::size_t>(place.rank);
    switch (place.kind) {
      case Place::Kind::input:
        return const_cast<std::byte*>(buffers.send) + element * size;  // inputs appear as sources only
      case Place::Kind::output:
        return buffers.receive + element * size;
      case Place::Kind::remoteInput:
        return const_cast<std::byte*>(buffers.remoteSend[rank]) + element * size;
      case Place::Kind::remoteOutput:
        return buffers.remoteReceive[rank] + element * size;
      case Place::Kind::scratch: {
        const std::size_t copy = chunk % schedule.live * static_cast<std::size_t>(program.scratchBlocks);
        return scratch_.data() + (copy + slot) * schedule.blockStride;
      }
      case Place::Kind::slot: {
        const std::size_t copy = (ringBegin_ + chunk) % schedule.depth * static_cast<std::size_t>(program.slots);
        return segment_.arena(place.rank) + (copy + slot) * schedule.blockStride;
      }
      case Place::Kind::pipe:
        return nullptr;  // has no address
    }
    fail(taccInternalError, "a program of {} names an unknown kind of memory", program.algorithm);
  };

  // All operands of a step have the same block, and one of them is a user's.
  const auto lengthOf = [&](int offset) {
    std::size_t length = 0, first = 0;
    for (const std::vector<Place>* places : {&operation.sources, &operation.destinations})
      for (const Place& place : *places)
        if (findBlock(*work.blocks, place, offset, length, first))
          return length <= begin ? 0 : std::min(elements, length - begin);
    fail(taccInternalError, "a program of {} has a step that does not say whose block it handles", program.algorithm);
  };

  const auto perBlock = [](const Place& p) { return p.kind == Place::Kind::slot || p.kind == Place::Kind::scratch; };
  const bool contiguous = split && std::ranges::none_of(operation.sources, perBlock) &&
                          std::ranges::none_of(operation.destinations, perBlock);
  const int pieces = contiguous ? 1 : operation.blockCount;
  for (int piece = 0; piece < pieces; ++piece) {
    const int last = contiguous ? operation.blockCount : piece + 1;
    const std::size_t n = split ? elementOf(operation.block + last) - elementOf(operation.block + piece)
                          : work.blocks != nullptr ? lengthOf(piece)
                                                   : elements;
    if (n == 0) continue;
    sources_.clear();
    destinations_.clear();
    for (const Place& place : operation.sources) sources_.push_back(resolve(place, piece));
    for (const Place& place : operation.destinations) destinations_.push_back(resolve(place, piece));
    visit(n);
  }
}

void Executor::combine(const Context& context, const Operation& operation, std::size_t elements) {
  const ElementWork& work = context.work;
  if (sources_.size() == 1) return copy(context, operation, elements * work.elementBytes);
  const bool results = std::ranges::all_of(operation.destinations, isUserMemory);
  const bool streaming =
      elements * work.elementBytes >= leastStream && (results ? work.nonTemporal.results : work.nonTemporal.slots);
  const auto destinationCount = static_cast<int>(destinations_.size());
  work.reduce({.destinations = destinations_.data(),
               .destinationCount = destinationCount,
               .sources = sources_.data(),
               .sourceCount = static_cast<int>(sources_.size()),
               .count = elements,
               .divisor = operation.completes ? work.divisor : 1,
               .streaming = streaming});
}

void Executor::copy(const Context& context, const Operation& operation, std::size_t bytes) {
  copied_.assign(operation, sources_[0], destinations_, bytes, context.work.nonTemporal);
  const auto copyTo = [](std::vector<void*>& targets, const std::byte* source, std::size_t n, bool streams) {
    if (targets.empty()) return;
    copyBytes(targets.data(), static_cast<int>(targets.size()), source, n, streams);
    for (void*& target : targets) target = static_cast<std::byte*>(target) + n;
  };
  // Stored in two ways: tile by tile, so that the source is in the cache the second time.
  const auto* source = static_cast<const std::byte*>(sources_[0]);
  const std::size_t tile = copied_.results.empty() || copied_.slots.empty() ? bytes : copiedTileBytes;
  for (std::size_t begin = 0; begin < bytes; begin += tile) {
    const std::size_t n = std::min(bytes - begin, tile);
    copyTo(copied_.slots, source + begin, n, copied_.streamsSlots);
    copyTo(copied_.results, source + begin, n, copied_.streamsResults);
  }
}

void Executor::fetch(const Place& place, void* to, const void* from, std::size_t bytes) {
  if (isPipe(place))
    pipes_.read(place.rank, to, bytes);
  else
    remote_.read(place.rank, to, from, bytes);
}

void Executor::combineThroughKernel(const Context& context, const Operation& operation, std::size_t elements) {
  const std::size_t size = context.work.elementBytes;
  if (sources_.size() == 1 && destinations_.size() == 1) {
    return fetch(operation.sources[0], destinations_[0], sources_[0], elements * size);
  }
  // Tile by tile: fetch every remote source's tile, then combine from the cache.
  if (bounce_.size() < sources_.size() * sourceBounceBytes) bounce_.resize(sources_.size() * sourceBounceBytes);
  addresses_ = sources_;
  targets_ = destinations_;
  for (std::size_t done = 0; done < elements;) {
    const std::size_t n = std::min(elements - done, sourceBounceBytes / size);
    for (std::size_t s = 0; s < addresses_.size(); ++s) {
      const Place& place = operation.sources[s];
      const auto* address = isPipe(place) ? nullptr : static_cast<const std::byte*>(addresses_[s]) + done * size;
      sources_[s] = address;
      if (!isPipe(place) && (!isRemote(place) || place.rank == rank_)) continue;
      std::byte* tile = bounce_.data() + s * sourceBounceBytes;
      fetch(place, tile, address, n * size);
      sources_[s] = tile;
    }
    for (std::size_t d = 0; d < targets_.size(); ++d)
      destinations_[d] = static_cast<std::byte*>(targets_[d]) + done * size;
    combine(context, operation, n);
    done += n;
  }
}

}  // namespace tacc
