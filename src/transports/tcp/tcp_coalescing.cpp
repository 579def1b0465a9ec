#include "transports/tcp/tcp_coalescing.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>

#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

// Of TCP_QUICKACK: whether what was read is acknowledged later, with data if there are some, or as soon as all was
// read; or now, and the next later.
constexpr int later = 0, whenRead = 1, once = 2;

}  // namespace

bool TcpCoalescing::beforeSend(int fd, std::size_t bytes, std::uint64_t reads) noexcept {
  if (reads != reads_ || bytes > smallBytes) sent_ = 0;
  reads_ = reads;
  const bool holds = sent_ >= leastSent;
  if (holds != holds_) setOption(fd, IPPROTO_TCP, TCP_NODELAY, holds ? 0 : 1);  // 1 also sends what is held
  holds_ = holds;
  if (bytes <= smallBytes) sent_ = std::min(sent_ + 1, leastSent);
  return sent_ == leastSent;
}

void TcpCoalescing::onRead(int fd, bool mayHoldNext) noexcept {
  if (mayHoldNext != delays_) setOption(fd, IPPROTO_TCP, TCP_QUICKACK, mayHoldNext ? later : whenRead);
  delays_ = mayHoldNext;
  isOwing_ = mayHoldNext;
}

void TcpCoalescing::acknowledge(int fd) noexcept {
  setOption(fd, IPPROTO_TCP, TCP_QUICKACK, once);
  isOwing_ = false;
}

}  // namespace tacc
