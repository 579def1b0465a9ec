// A model of ranks that make calls through the real BasicCallExchange, one step of one rank at a time: the rings lie in
// ordinary memory, of any depth, and a rank that would wait gives up its turn instead. So every interleaving can be
// had, and had again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/shm/call_exchange-inl.hpp"

namespace tacc::test {

constexpr std::size_t longestPost = roomForPost(64) + 64;  // takes twice as much room as 64 bytes

/// A collective as far as the exchange is concerned: who has a payload, who waits for whom, and how large it is.
struct ModelCall {
  enum class Kind : std::uint8_t { down, up, all };                 // broadcast, reduce, allreduce
  enum class Size : std::uint8_t { note, line, eager, longEager };  // where the payload goes if it can
  Kind kind;
  int root;
  Size size;
  friend bool operator==(const ModelCall&, const ModelCall&) = default;

  std::size_t count() const {
    return size == Size::note ? 2 : size == Size::line ? 12 : size == Size::eager ? 16 : longestPost / sizeof(float);
  }
  std::size_t bytes() const { return count() * sizeof(float); }
  bool isRooted() const { return kind != Kind::all; }
  std::uint64_t signature() const {
    const Collective collective = kind == Kind::down ? Collective::broadcast
                                  : kind == Kind::up ? Collective::reduce
                                                     : Collective::allReduce;
    return makeSignature(collective, taccFloat32, taccSum, isRooted() ? root : 0, count());
  }
  /// Whether `rank` has a payload for others.
  bool fills(int rank) const { return kind == Kind::all || (kind == Kind::down) == (rank == root); }
  /// Whether `rank` waits for others.
  bool waits(int rank) const { return kind == Kind::all || (kind == Kind::up) == (rank == root); }
};

using ModelProgram = std::vector<ModelCall>;

/// The rings of a few ranks, in plain memory that can be copied.
template <std::uint32_t lines, std::uint32_t eagers>
class RingSegment {
 public:
  static constexpr std::uint32_t callDepth = lines;
  static constexpr int most = 3;  // ranks
  static constexpr std::size_t ringBytes = eagers * roomForPost(longestPost);
  static constexpr std::size_t areaBytes = lines * (sizeof(CallLine) + sizeof(CallNote)) + ringBytes;
  struct alignas(cacheLine) Memory {
    std::byte bytes[most * areaBytes];
  };

  RingSegment(Memory& memory, int ranks) : base_(memory.bytes), geometry_{.ranks = ranks} {}
  const NodeGeometry& geometry() const noexcept { return geometry_; }
  CallLine& callLine(int rank, std::uint32_t call) const noexcept {
    return reinterpret_cast<CallLine*>(area(rank))[call % lines];
  }
  CallNote& callNote(int rank, std::uint32_t call) const noexcept {
    return reinterpret_cast<CallNote*>(area(rank) + lines * sizeof(CallLine))[call % lines];
  }
  std::byte* eagerRing(int rank) const noexcept { return area(rank) + lines * (sizeof(CallLine) + sizeof(CallNote)); }
  std::size_t eagerRingBytes() const noexcept { return ringBytes; }

 private:
  std::byte* area(int rank) const noexcept { return base_ + static_cast<std::size_t>(rank) * areaBytes; }
  std::byte* base_;
  NodeGeometry geometry_;
};

/// Thrown by a rank's wait: it is another's turn.
struct WouldWait {};

/// In the place of Waiter: waits for nothing, and lets others take their turns between any two looks at shared words.
struct TurnWaiter {
  std::function<void(int rank)>* interrupt;  // empty: a step is never interrupted
  int rank;

  bool sees(const std::atomic<std::uint32_t>& word, std::uint32_t target) const {
    pause();
    const bool reached = hasReached(word.load(std::memory_order_acquire), target);
    pause();
    return reached;
  }
  void wait(const std::atomic<std::uint32_t>& word, std::uint32_t target, int) const {
    if (!sees(word, target)) throw WouldWait{};
  }
  void publish(std::atomic<std::uint32_t>& word, std::uint32_t value) const {
    pause();
    word.store(value, std::memory_order_release);
    pause();
  }
  int nameOf(int peer) const { return peer; }
  void pause() const {
    if (*interrupt) (*interrupt)(rank);
  }
};

template <std::uint32_t lines, std::uint32_t eagers>
class CallModel {
 public:
  using Segment = RingSegment<lines, eagers>;
  using Exchange = BasicCallExchange<Segment, TurnWaiter>;
  static constexpr int most = Segment::most;
  enum class Outcome { stepped, waits, finished };

  /// What a rank does next.
  struct Position {
    std::uint32_t call = 0;  // index into its program
    enum Phase : std::uint32_t { begin, post, await, read } phase = begin;
  };
  /// All that changes; copied to come back to it.
  struct State {
    typename Segment::Memory memory;
    std::array<std::optional<Exchange>, most> exchanges;
    std::array<Position, most> positions;
  };

  /// Rank r makes the calls of programs[r], the first of which is number `start` + 1; `start` is a multiple of the
  /// rings' depth.
  explicit CallModel(std::vector<ModelProgram> programs, std::uint32_t start = 0)
      : programs_(std::move(programs)), start_(start) {
    std::memset(&state.memory, 0, sizeof state.memory);
    for (int rank = 0; rank < ranks(); ++rank) waiters_[index(rank)] = {&interrupt, rank};
    const Segment segment(state.memory, ranks());
    for (int rank = 0; rank < ranks(); ++rank) {
      for (std::uint32_t back = 0; back < lines; ++back) {
        segment.callLine(rank, start - back).sequence.store(start - back);
        segment.callNote(rank, start - back).sequence.store(start - back);
      }
      state.exchanges[index(rank)].emplace(segment, rank, waiters_[index(rank)]);
    }
  }
  CallModel(const CallModel&) = delete;
  CallModel& operator=(const CallModel&) = delete;

  int ranks() const { return static_cast<int>(programs_.size()); }
  bool isFinished(int rank) const { return state.positions[index(rank)].call == programs_[index(rank)].size(); }

  /// The next step of `rank`. Throws Error where it finds that programs differ, std::logic_error where it has another
  /// call's payload.
  Outcome step(int rank) {
    if (isFinished(rank)) return Outcome::finished;
    Position& at = state.positions[index(rank)];
    Exchange& exchange = *state.exchanges[index(rank)];
    const ModelCall& call = programs_[index(rank)][at.call];
    const Exchange before = exchange;
    try {
      switch (at.phase) {
        case Position::begin:
          exchange.begin(call.signature(), call.bytes(), call.isRooted());
          if (call.fills(rank)) fill(exchange.payload(call.bytes()), call.bytes(), rank, at.call);
          at.phase = Position::post;
          break;
        case Position::post:
          exchange.post();
          if (call.waits(rank))
            at.phase = Position::await;
          else
            at = {at.call + 1, Position::begin};
          break;
        case Position::await:
          if (call.kind == ModelCall::Kind::down)
            exchange.await(call.root);
          else
            exchange.awaitAll();
          at.phase = Position::read;
          break;
        case Position::read:
          for (int peer = 0; peer < ranks(); ++peer)
            if (call.fills(peer)) check(exchange.payloadOf(peer, call.bytes()), call.bytes(), peer, at.call, rank);
          at = {at.call + 1, Position::begin};
      }
    } catch (const WouldWait&) {
      exchange = before;  // a step that waits has written nothing yet
      exchange.compareSeen();
      return Outcome::waits;
    }
    return Outcome::stepped;
  }

  /// Of all that the future depends on: what is in memory follows from where each rank is.
  std::uint64_t digest() const {
    static_assert(std::is_trivially_copyable_v<Exchange> && sizeof(Exchange) % 8 == 0);
    std::uint64_t hash = 0;
    const auto add = [&](std::uint64_t word) {
      hash = (std::rotl(hash, 29) ^ word) * 0x9E37'79B9'7F4A'7C15ULL;
      hash ^= hash >> 32;
    };
    for (int rank = 0; rank < ranks(); ++rank) {
      const Position& at = state.positions[index(rank)];
      add(std::uint64_t{at.call} << 32 | at.phase);
      std::array<std::uint64_t, sizeof(Exchange) / 8> words;
      std::memcpy(words.data(), &*state.exchanges[index(rank)], sizeof(Exchange));
      for (const std::uint64_t word : words) add(word);
    }
    return hash;
  }

  State state;
  std::function<void(int rank)> interrupt;  // called within a step of `rank`, where others may step

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static std::byte valueOf(int rank, std::uint32_t call, std::size_t at) {
    return static_cast<std::byte>(call * 37 + static_cast<std::uint32_t>(rank) * 101 + at);
  }
  static void fill(std::byte* payload, std::size_t bytes, int rank, std::uint32_t call) {
    for (std::size_t i = 0; i < bytes; ++i) payload[i] = valueOf(rank, call, i);
  }
  static void check(const std::byte* payload, std::size_t bytes, int rank, std::uint32_t call, int reader) {
    for (std::size_t i = 0; i < bytes; ++i)
      if (payload[i] != valueOf(rank, call, i))
        throw std::logic_error(
            fmt::format("rank {} has another payload of rank {} than that of its call {}", reader, rank, call));
  }

  std::vector<ModelProgram> programs_;
  std::uint32_t start_;
  std::array<TurnWaiter, most> waiters_{};
};

}  // namespace tacc::test
