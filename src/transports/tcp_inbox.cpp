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
  const std::size_t bytes = found->data.size();
  check(tag, bytes, capacity);
  const std::size_t arrived = isComing ? bytes - left_ : bytes;
  if (arrived > 0) std::memcpy(to, found->data.data(), arrived);
  keptBytes_ -= bytes;
  kept_.erase(found);
  if (!isComing) return complete(request, bytes);
  isKept_ = false;
  at_ = to + arrived;
  request_ = &request;
}

void TcpInbox::begin(std::uint32_t tag, std::size_t bytes) {
  if (bytes > longest) fail(taccRemoteError, "rank {} got from rank {} what is no message of tacc", rank_, peer_);
  const auto found = std::ranges::find(posted_, tag, &Posted::tag);
  if (found != posted_.end()) check(tag, bytes, found->capacity);
  bytes_ = left_ = bytes;
  isKept_ = found == posted_.end();
  if (isKept_) {
    kept_.push_back({tag, std::vector<std::byte>(bytes)});
    keptBytes_ += bytes;
    at_ = kept_.back().data.data();
  } else {
    at_ = found->data;
    request_ = found->request;
    posted_.erase(found);
  }
  if (bytes == 0) finish();
}

void TcpInbox::landed(std::size_t bytes) {
  at_ += bytes;
  left_ -= bytes;
  if (left_ == 0 && bytes > 0) finish();
}

void TcpInbox::finish() {
  isKept_ = false;
  if (NetworkRequest* request = std::exchange(request_, nullptr)) complete(*request, bytes_);
}

}  // namespace tacc
