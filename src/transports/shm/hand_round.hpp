// Descriptors of library memory, handed round among the ranks of a host.
//
// Memory is announced once in its life, so a communicator keeps no connections for it. A rank that has something to
// hand round sends each of the others a datagram, at a name in the abstract namespace of unix sockets that follows from
// a key of the communicator's and is bound for that round alone. Strangers can find the name once it is bound, and send
// anything: what does not prove that it comes from the rank that it names is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "transports/file_descriptor.hpp"
#include "transports/keyed_hash.hpp"

namespace tacc {

/// A segment of library memory to hand round.
struct OfferedMemory {
  std::uint64_t id;
  int fd;  // stays the caller's
  std::size_t bytes;
};

struct ReceivedMemory {
  int rank;  // whose it is
  std::uint64_t id;
  FileDescriptor fd;
  std::size_t bytes;
};

class HandRound {
 public:
  static constexpr std::size_t mostOffered = 2;  // by a rank in a round: the input and the output of a call

  /// Called about every millisecond with each rank that is still waited for; what it throws ends the round. A rank may
  /// have done its part and gone: `hasCome` says whether something has arrived since.
  using Look = std::function<void(int missing, const std::function<bool()>& hasCome)>;

  /// `key`: known to the ranks of this communicator, and to nobody else.
  HandRound(const Key& key, int ranks, int rank);

  /// Collective. `givers[r]`: whether rank r offers something, equal on all ranks. Every rank gets what the others
  /// offer. Throws what `look` throws, and taccSystemError, where this process has no descriptor left too: then the
  /// others have to be told.
  std::vector<ReceivedMemory> run(std::span<const OfferedMemory> mine, const std::vector<bool>& givers,
                                  const Look& look);

 private:
  struct Parcel;
  class Round;

  Key key_;
  int ranks_;
  int rank_;
  std::uint64_t rounds_ = 0;  // so far; the same on all ranks, as their calls come in the same order
};

}  // namespace tacc
