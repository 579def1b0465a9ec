// Prices that the ranks of one host share: all need the same ones, and where ranks are many they take long to find.
//
// What a call would take is a pure function of what all ranks have agreed on. So the rank of a host that needs the
// prices of a kind of call first finds them and writes them here, and the others wait for that and read them. A rank
// that has waited for long, or finds no room, finds them itself: the board decides nothing but who does the work.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "selection/network_prices.hpp"

namespace tacc {

/// A view of memory that the ranks of a host share and that begins as zeros. Without memory every rank finds its own.
class PriceBoard {
 public:
  /// Calls that cost the same.
  struct Kind {
    Collective collective;
    int root;           // below 2^24
    std::size_t bytes;  // a power of two, or some eighths of it more; other sizes are not shared
  };
  using Find = std::function<std::vector<NetworkCandidate>()>;

  PriceBoard() = default;
  /// `memory` begins at a cache line; as many kinds as fit are shared. `check` is called some ten times a second while
  /// this rank waits for another: what it throws ends the wait.
  PriceBoard(std::span<std::byte> memory, std::function<void()> check);

  /// What `find` returns, called here or by the rank that asked first; without reasons where it was that one.
  std::vector<NetworkCandidate> candidates(const Kind& kind, const Find& find);

  /// Bytes of memory for this number of kinds.
  static std::size_t bytesFor(std::size_t kinds) noexcept { return kinds * sizeof(Entry); }

 private:
  enum class State : std::uint32_t { making, ready, abandoned };
  struct Price {
    std::int32_t algorithm;  // its number in the registry
    std::uint8_t isPossible, isPlayed;
    double chunkBytes, seconds, alone, busiest;
  };
  static constexpr std::size_t mostCandidates = 31;
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> name;  // of the kind; 0: free. Who sets it fills the entry
    std::atomic<std::uint32_t> state;
    std::uint32_t count;
    Price prices[mostCandidates];
  };

  static std::uint64_t nameOf(const Kind& kind) noexcept;
  static void write(Entry& entry, const std::vector<NetworkCandidate>& candidates);
  static std::vector<NetworkCandidate> read(const Entry& entry);
  bool isReady(Entry& entry) const;
  std::vector<NetworkCandidate> make(Entry& entry, const Find& find) const;

  std::span<Entry> entries_;
  std::function<void()> check_;
};

}  // namespace tacc
