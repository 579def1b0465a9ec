// What a taccCenter_t points to, and which of them there are.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "easgd/center.hpp"
#include "tacc/center.h"

struct taccCenter {
  std::unique_ptr<tacc::Center> center;
  std::uint32_t generation;  // processGeneration() where it was made
  pid_t process;
  std::atomic<bool> inside{false};  // a call of a thread is
};

namespace tacc {

taccCenter_t makeCenterHandle(std::unique_ptr<Center> center);

/// A call on a center: the handle is one, of this process, and no other thread is inside. Else throws.
class CenterCall {
 public:
  explicit CenterCall(taccCenter_t handle);
  ~CenterCall() {
    if (handle_) handle_->inside.store(false, std::memory_order_release);
  }
  CenterCall(const CenterCall&) = delete;
  CenterCall& operator=(const CenterCall&) = delete;

  Center& center() const noexcept { return *handle_->center; }
  /// The handle is none from now on; it is freed with this object.
  void remove();

 private:
  std::shared_ptr<taccCenter> handle_;
};

}  // namespace tacc
