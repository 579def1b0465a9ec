// What is known of the last short call of each collective: the next one is most often like it, but for its buffers, and
// takes less time than it takes to judge it anew and to choose its way.
#pragma once

#include <array>
#include <cstddef>

#include "core/call.hpp"

namespace tacc {

class ShortCalls {
 public:
  /// Whether a call is, but for its buffers, as the one that was noted last of its collective. Of an argument that the
  /// collective does not have, what Call has at first.
  bool has(Collective collective, std::size_t count, taccDataType_t type, taccRedOp_t op, int root) const noexcept {
    const Noted& noted = noted_[static_cast<std::size_t>(collective)];
    return noted.isThere && noted.count == count && noted.type == type && noted.op == op && noted.root == root;
  }
  /// A call without a factor, a reduction of the program, pieces or counts for each rank: of these more is to be known.
  void note(const Call& call) noexcept {
    noted_[static_cast<std::size_t>(call.collective)] = {true, call.count, call.type, call.op, call.root};
  }
  void forget() noexcept { noted_ = {}; }

 private:
  struct Noted {
    bool isThere = false;
    std::size_t count = 0;
    taccDataType_t type = taccInt8;
    taccRedOp_t op = taccSum;
    int root = 0;
  };
  std::array<Noted, collectiveCount + 1> noted_{};
};

}  // namespace tacc
