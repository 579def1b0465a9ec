// Programs that are drawn: calls of all kinds one after the other, each with data of its own, so that a rank that gets
// another call's shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "algorithms/plan.hpp"
#include "tacc/tacc.h"

namespace tacc::test {

/// One message between two ranks.
struct DrawnMessage {
  int from, to;
  std::size_t count;
};

/// One call of all ranks, or with `messages` a group of sends and receives.
struct DrawnCall {
  Collective collective;
  taccDataType_t type;
  taccRedOp_t op;
  std::size_t count;
  int root;
  bool inPlace;
  bool library;  // buffers in library memory
  std::vector<DrawnMessage> messages;
  bool grouped;  // false, of a single message: sent and received without a group
};

/// The calls of one program; equal on all ranks that draw with one seed. Runs of small rooted calls of one kind are
/// frequent: in them ranks drift apart.
std::vector<DrawnCall> drawProgram(std::uint64_t seed, int ranks);

std::string describe(const DrawnCall& call);

/// The buffers of one rank, for all calls that can be drawn.
class DrawnBuffers {
 public:
  explicit DrawnBuffers(int ranks);
  ~DrawnBuffers();
  DrawnBuffers(const DrawnBuffers&) = delete;
  DrawnBuffers& operator=(const DrawnBuffers&) = delete;

  std::byte* send(bool library) { return library ? library_[0] : own_[0].data(); }
  std::byte* receive(bool library) { return library ? library_[1] : own_[1].data(); }

 private:
  std::vector<std::byte> own_[2];
  std::byte* library_[2] = {};
};

/// How ranks come to their calls: late now and then, one of them often, so that they drift apart; or at once.
enum class Pace { drifting, prompt };

/// Makes the calls on `rank` and looks at every result. "" or what was wrong.
std::string runProgram(const std::vector<DrawnCall>& calls, std::uint64_t seed, Pace pace, taccComm_t comm, int rank,
                       int ranks, DrawnBuffers& buffers);

}  // namespace tacc::test
