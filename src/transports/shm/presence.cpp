#include "transports/shm/presence.hpp"

#include <utility>

#include "core/fork.hpp"

namespace tacc {

Presence::Presence(const NodeSegment& segment, std::shared_ptr<const void> memory, int rank,
                   std::shared_ptr<const Liveness> claims, std::vector<int> claimOf)
    : segment_(segment),
      memory_(std::move(memory)),
      rank_(rank),
      claims_(std::move(claims)),
      claimOf_(std::move(claimOf)),
      process_(processGeneration()) {}

bool Presence::isThere(int rank) const {
  if (segment_.attendance(rank).left.load(std::memory_order_acquire) != 0) return false;
  return claims_->isAlive(claimOf(rank));
}

void Presence::leave() noexcept {
  if (process_ == processGeneration()) segment_.attendance(rank_).left.store(1, std::memory_order_release);
}

void Presence::tellPassed(int rank, std::uint32_t agreement) const noexcept {
  std::atomic<std::uint32_t>& passed = segment_.attendance(rank).passed;
  std::uint32_t known = passed.load(std::memory_order_relaxed);
  while (known <= agreement && !passed.compare_exchange_weak(known, agreement + 1, std::memory_order_acq_rel)) {
  }
}

std::optional<std::uint32_t> Presence::passed() const noexcept {
  const std::uint32_t told = segment_.attendance(rank_).passed.load(std::memory_order_acquire);
  if (told == 0) return std::nullopt;
  return told - 1;
}

}  // namespace tacc
