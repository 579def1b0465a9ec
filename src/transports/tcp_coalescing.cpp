#include "transports/tcp_coalescing.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

namespace tacc {
namespace {

// Of TCP_QUICKACK: whether what was read is acknowledged later, with data if there are some, or as soon as all was
// read; or now, and the next later.
constexpr int later = 0, whenRead = 1, once = 2;

void set(int fd, int option, int value) noexcept {
  // Without it messages leave one by one, or a little later.
  (void)::setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

}  // namespace

bool TcpCoalescing::beforeSend(int fd, std::size_t bytes, std::uint64_t reads) noexcept {
  if (reads != reads_ || bytes > smallBytes) sent_ = 0;
  reads_ = reads;
  const bool holds = sent_ >= leastSent;
  if (holds != holds_) set(fd, TCP_NODELAY, holds ? 0 : 1);  // 1 also sends what is held
  holds_ = holds;
  if (bytes <= smallBytes) sent_ = std::min(sent_ + 1, leastSent);
  return sent_ == leastSent;
}

void TcpCoalescing::onRead(int fd, bool holds) noexcept {
  if (holds != delays_) set(fd, TCP_QUICKACK, holds ? later : whenRead);
  delays_ = holds;
  isOwing_ = holds;
}

void TcpCoalescing::acknowledge(int fd) noexcept {
  set(fd, TCP_QUICKACK, once);
  isOwing_ = false;
}

}  // namespace tacc
