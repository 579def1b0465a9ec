// UCX as tacc configures it: what is set, and why, is in ucx_context.cpp. Whatever the user set in UCX_* wins.
#pragma once

#include <string>

#include "transports/network_transport.hpp"
#include "transports/ucx/ucx_library.hpp"

namespace tacc {

/// Owns a ucp_context. Does not change the process's environment, and leaves no signal handlers of UCX behind.
class UcxContext {
 public:
  /// Throws taccSystemError, also when the network interface of the options does not exist.
  explicit UcxContext(const NetworkOptions& options);
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;
  ~UcxContext() { ucx().cleanup(context_); }

  ucp_context_h get() const noexcept { return context_; }
  /// Bytes that UCX needs in front of a request that the caller allocates.
  std::size_t requestBytes() const;
  /// "tcp on lo, eth0; rc_mlx5 on mlx5_0:1": what reaches other hosts from here; empty: nothing.
  std::string devices() const;
  /// Whether messages may go another way than over TCP.
  bool hasFabric() const noexcept { return hasFabric_; }

 private:
  bool hasFabric_;
  ucp_context_h context_ = nullptr;
};

/// "1.13.1"
std::string ucxVersion();

}  // namespace tacc
