// A name in the abstract namespace of unix sockets, as a socket address. It is no file, so nothing is left behind, and
// it is seen by all processes of the same network namespace.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace tacc {

class AbstractAddress {
 public:
  /// `name` has at most 107 bytes.
  explicit AbstractAddress(const std::string& name) noexcept
      : size_(static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) {
    address_.sun_family = AF_UNIX;
    std::memcpy(address_.sun_path + 1, name.data(), name.size());  // the zero before it means: abstract
  }

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const noexcept { return size_; }

 private:
  sockaddr_un address_{};
  socklen_t size_;
};

}  // namespace tacc
