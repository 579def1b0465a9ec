// Memory that a call works in and that the next ones use again, so that a repeated call takes none.
#pragma once

#include <cstddef>
#include <memory>

namespace tacc {

class KeptMemory {
 public:
  /// Beyond that it costs nothing beside the call, and would be missed elsewhere.
  static constexpr std::size_t mostKept = std::size_t{64} << 20;

  /// At least that much, aligned for every type; what was in it is lost.
  std::byte* atLeast(std::size_t bytes) {
    if (bytes <= bytes_) return memory_.get();
    bytes_ = 0;
    memory_.reset();
    memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    bytes_ = bytes;
    return memory_.get();
  }
  /// The call is over.
  void trim() noexcept {
    if (bytes_ <= mostKept) return;
    bytes_ = 0;
    memory_.reset();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
};

/// Trims when the call ends, well or not.
class Trimmed {
 public:
  explicit Trimmed(KeptMemory& memory) : memory_(memory) {}
  Trimmed(const Trimmed&) = delete;
  Trimmed& operator=(const Trimmed&) = delete;
  ~Trimmed() { memory_.trim(); }

 private:
  KeptMemory& memory_;
};

}  // namespace tacc
