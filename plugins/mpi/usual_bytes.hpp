// What calls usually move whose counts are not known to all ranks, for those that must not wait to find out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "prepared.hpp"

namespace tacc::mpi {

struct Communicator;

/// Of the nonblocking gathers, scatters and alltoalls with counts for each rank on one communicator. All ranks make as
/// many of each before the same blocking call, so there they may agree on the largest of their mean blocks: after 4
/// calls, and again after 8 times as many. What they are asked is the same on all ranks then, but for note().
class UsualBytes {
 public:
  /// Whether a rank knows its own counts only.
  static constexpr bool isAbout(Kind kind) noexcept {
    return kind == Kind::gatherv || kind == Kind::scatterv || kind == Kind::alltoallv;
  }
  /// One more call. `bytes`: this rank's mean block.
  void note(Kind kind, std::size_t bytes) noexcept {
    Calls& calls = calls_[indexOf(kind)];
    ++calls.count;
    calls.bytes += bytes;
    isDue_ = isDue_ || calls.count >= calls.until;
  }
  /// What the ranks agreed on last; nothing is known before that.
  bool isKnown(Kind kind) const noexcept { return of(kind).isKnown; }
  std::size_t known(Kind kind) const noexcept { return of(kind).known; }
  bool isDue() const noexcept { return isDue_; }
  /// Collective over `communicator`, and waits for all of it.
  void agree(const Communicator& communicator);

 private:
  struct Calls {
    std::uint64_t count = 0, bytes = 0;  // since the last agreement
    std::uint64_t until = 4;             // calls to the next
    std::size_t known = 0;
    bool isKnown = false;
  };
  static constexpr std::size_t indexOf(Kind kind) noexcept {
    return kind == Kind::gatherv ? 0 : kind == Kind::scatterv ? 1 : 2;
  }
  const Calls& of(Kind kind) const noexcept { return calls_[indexOf(kind)]; }

  std::array<Calls, 3> calls_{};
  bool isDue_ = false;
};

/// The most that a rank gave. Collective over `communicator`, by MPI.
std::size_t mostOf(std::size_t bytes, const Communicator& communicator);

}  // namespace tacc::mpi
