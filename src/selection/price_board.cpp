#include "selection/price_board.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "transports/shm/futex.hpp"

namespace tacc {
namespace {

constexpr long checkNanoseconds = 100'000'000;
/// After this time a rank that does not come on, stopped or dead, is not waited for any more.
constexpr std::chrono::seconds patience{10};

}  // namespace

PriceBoard::PriceBoard(std::span<std::byte> memory, std::function<void()> check)
    : entries_(reinterpret_cast<Entry*>(memory.data()), memory.size() / sizeof(Entry)), check_(std::move(check)) {}

/// 0: it has none.
std::uint64_t PriceBoard::nameOf(const Kind& kind) noexcept {
  const std::size_t power = std::bit_floor(kind.bytes);
  const std::size_t eighths = power < 8 ? 0 : (kind.bytes - power) / (power / 8);
  if (power == 0 || power + power / 8 * eighths != kind.bytes) return 0;
  const auto sizeClass = static_cast<std::uint64_t>(std::bit_width(power)) << 3 | eighths;
  return sizeClass << 40 | static_cast<std::uint64_t>(kind.collective) << 32 |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(kind.root));
}

std::vector<NetworkCandidate> PriceBoard::candidates(const Kind& kind, const Find& find) {
  const std::uint64_t name = nameOf(kind);
  if (name == 0 || algorithms().size() > mostCandidates) return find();
  for (Entry& entry : entries_) {
    std::uint64_t known = entry.name.load(std::memory_order_acquire);
    if (known == 0 && entry.name.compare_exchange_strong(known, name, std::memory_order_acq_rel))
      return make(entry, find);
    if (known == name) return isReady(entry) && entry.count == algorithms().size() ? read(entry) : find();
  }
  return find();
}

std::vector<NetworkCandidate> PriceBoard::make(Entry& entry, const Find& find) const {
  const auto end = [&entry](State state) {
    entry.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
    futexWakeAll(entry.state);
  };
  try {
    std::vector<NetworkCandidate> found = find();
    write(entry, found);
    end(State::ready);
    return found;
  } catch (...) {
    end(State::abandoned);
    throw;
  }
}

/// Waits for the rank that makes it.
bool PriceBoard::isReady(Entry& entry) const {
  constexpr auto making = static_cast<std::uint32_t>(State::making), ready = static_cast<std::uint32_t>(State::ready);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (entry.state.load(std::memory_order_acquire) == making && std::chrono::steady_clock::now() < end) {
    futexWait(entry.state, making, checkNanoseconds);
    if (check_) check_();
  }
  return entry.state.load(std::memory_order_acquire) == ready;
}

void PriceBoard::write(Entry& entry, const std::vector<NetworkCandidate>& candidates) {
  entry.count = static_cast<std::uint32_t>(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const NetworkCandidate& one = candidates[i];
    entry.prices[i] = {static_cast<std::int32_t>(one.algorithm - algorithms().data()),
                       one.isPossible,
                       one.isPlayed,
                       one.chunkBytes,
                       one.seconds,
                       one.alone,
                       one.busiest};
  }
}

std::vector<NetworkCandidate> PriceBoard::read(const Entry& entry) {
  const std::size_t known = algorithms().size();
  std::vector<NetworkCandidate> candidates;
  for (const Price& price : std::span(entry.prices).first(known)) {
    NetworkCandidate& one = candidates.emplace_back();
    one.algorithm = &algorithms()[std::min(static_cast<std::size_t>(price.algorithm), known - 1)];
    one.isPossible = price.isPossible != 0;
    one.isPlayed = price.isPlayed != 0;
    one.chunkBytes = price.chunkBytes;
    one.seconds = price.seconds;
    one.alone = price.alone;
    one.busiest = price.busiest;
  }
  return candidates;
}

}  // namespace tacc
