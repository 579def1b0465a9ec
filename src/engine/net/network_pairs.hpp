// Messages between pairs of ranks that only the network connects, any number at a time.
//
// Every operation opens with a header that says what is sent; short data travels inside it, longer data follows as a
// separate message, straight from buffer to buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "core/call.hpp"
#include "engine/net/network_activity.hpp"
#include "engine/net/network_peers.hpp"

namespace tacc {

class NetworkPairs final : public NetworkActivity {
 public:
  NetworkPairs(NetworkPeers& peers, int rank) : peers_(peers), rank_(rank) {}

  /// Begins `operations`, the caller's own sends and receives, all with other ranks. What the one gives and the other
  /// takes is compared: type and count.
  void start(std::span<const PointToPoint> operations);

  bool advance() override;
  bool isFinished() const override;
  std::vector<int> awaited() const override;
  /// "receive of 5 float from rank 2", of the first that is not done.
  std::string describe() const;

 private:
  struct Operation {
    PointToPoint what;
    std::size_t bytes = 0;
    CallHeader header{};              // as sent, or as expected
    std::size_t inlined = 0;          // bytes of the data that travel with it
    std::vector<std::byte> envelope;  // header, and room for short data
    NetworkRequest opening;
    std::vector<NetworkRequest> data;  // pieces
    std::size_t arrived = 0;           // pieces that are done
    bool isOpened = false;             // receives: the header has been looked at
    bool isDone() const { return isOpened && opening.done && arrived == data.size(); }
  };
  bool openReceive(Operation& operation);
  void startPieces(Operation& operation, std::uint32_t tag);
  [[noreturn]] void failMismatch(const Operation& operation, const CallHeader& theirs) const;

  NetworkPeers& peers_;
  int rank_;
  std::deque<Operation> operations_;  // requests must not move
};

}  // namespace tacc
