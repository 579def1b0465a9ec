// Small messages of a connection share frames where the one who sends them is ahead of the one who reads them.
//
// The root of broadcasts in a row waits for nobody. If each of its messages leaves at once, each is a frame, an
// interrupt and a process that wakes up, and the readers only fall behind. So of one who sends small messages and reads
// nothing in between, Nagle's algorithm (RFC 896) holds what is sent while the message before is not acknowledged: it
// leaves with what comes after it.
//
// Nagle's algorithm is known for stalls, as an acknowledgement may wait 40 ms for data to ride on. Here a message that
// may have others held behind it says so, and its reader acknowledges when it has read all that has come and is about
// to wait. So a message is held while the reader has not come to the one before, and for a round trip.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacc {

class TcpCoalescing {
 public:
  /// How many small messages leave at once, though nothing was read since the first.
  static constexpr int leastSent = 6;
  static constexpr std::size_t smallBytes = 1024;

  /// A message of `bytes` bytes is about to be sent by a rank that has read something, from any rank, `reads` times.
  /// True: the next one may be held, and this one has to say so.
  bool beforeSend(int fd, std::size_t bytes, std::uint64_t reads) noexcept;

  /// A message has begun that says so, or not.
  void onRead(int fd, bool mayHoldNext) noexcept;
  /// acknowledge() has to come before this rank waits for long.
  bool isOwing() const noexcept { return isOwing_; }
  void acknowledge(int fd) noexcept;

 private:
  int sent_ = 0;  // small ones, since reads_
  std::uint64_t reads_ = 0;
  bool holds_ = false;
  bool delays_ = false;  // its acknowledgements
  bool isOwing_ = false;
};

}  // namespace tacc
