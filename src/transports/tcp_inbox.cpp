#include "transports/tcp_inbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace tacc {
namespace {

constexpr std::size_t longest = std::size_t{1} << 48;

}  // namespace

void TcpInbox::check(std::uint32_t tag, std::size_t bytes, std::size_t capacity) const {
  if (bytes <= capacity) return;
  fail(taccInvalidUsage, "rank {} expected at most {} bytes from rank {}, which sent {} (message {})", rank_, capacity,
       peer_, bytes, tag);
}

void TcpInbox::complete(NetworkRequest& request, std::size_t bytes) noexcept {
  request.bytes = bytes;
  request.done = true;
}

void TcpInbox::post(std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) {
  request.done = false;
  auto* to = static_cast<std::byte*>(data);
  const auto found = std::ranges::find(kept_, tag, &Kept::tag);
  if (found == kept_.end()) {
    posted_.push_back({tag, to, capacity, &request});
    return;
  }
  const bool isComing = isKept_ && found == kept_.end() - 1;
  const std::size_t bytes = found->bytes;
  check(tag, bytes, capacity);
  const std::size_t arrived = isComing ? bytes - left_ : bytes;
  if (arrived > 0) std::memcpy(to, found->data.data(), arrived);
  keptBytes_ -= bytes;
  kept_.erase(found);
  if (!isComing) return complete(request, bytes);
  isKept_ = false;
  at_ = to + arrived;
  room_ = left_;
  request_ = &request;
}

void TcpInbox::begin(std::uint32_t tag, std::size_t bytes) {
  if (bytes > longest) fail(taccRemoteError, "rank {} got from rank {} what is no message of tacc", rank_, peer_);
  const auto found = std::ranges::find(posted_, tag, &Posted::tag);
  if (found != posted_.end()) check(tag, bytes, found->capacity);
  bytes_ = left_ = bytes;
  isKept_ = found == posted_.end();
  if (isKept_) {
    kept_.push_back({tag, bytes, {}});
    keptBytes_ += bytes;
    makeRoom(firstMemory);
  } else {
    at_ = found->data;
    room_ = bytes;
    request_ = found->request;
    posted_.erase(found);
  }
  if (bytes == 0) finish();
}

void TcpInbox::landed(std::size_t bytes) {
  at_ += bytes;
  left_ -= bytes;
  room_ -= bytes;
  if (room_ > 0 || bytes == 0) return;
  if (left_ == 0) return finish();
  makeRoom(kept_.back().data.size());
}

/// For more of the message that is kept: up to `most` bytes.
void TcpInbox::makeRoom(std::size_t most) {
  std::vector<std::byte>& data = kept_.back().data;
  const std::size_t arrived = data.size();
  data.resize(arrived + std::min(left_, most));
  at_ = data.data() + arrived;
  room_ = data.size() - arrived;
}

void TcpInbox::failForged() const {
  fail(taccRemoteError,
       "rank {} got bytes on its connection to rank {} that this rank did not send there: they were changed, repeated "
       "or "
       "left out on their way (TACC_ENCRYPTION=on, tcp)",
       rank_, peer_);
}

void TcpInbox::finish() {
  isKept_ = false;
  if (NetworkRequest* request = std::exchange(request_, nullptr)) complete(*request, bytes_);
}

}  // namespace tacc
