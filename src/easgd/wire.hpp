// Differences as they move between ranks: float32, or rounded to 16 bits.
#pragma once

#include <cstddef>

#include "tacc/easgd.h"

namespace tacc {

class Wire {
 public:
  explicit Wire(taccEasgdWire_t kind) noexcept
      : type_(kind == taccEasgdWireBfloat16  ? taccBfloat16
              : kind == taccEasgdWireFloat16 ? taccFloat16
                                             : taccFloat32) {}

  taccDataType_t type() const noexcept { return type_; }
  bool isExact() const noexcept { return type_ == taccFloat32; }
  /// Bytes of one number.
  std::size_t bytes() const noexcept { return isExact() ? 4 : 2; }

  /// Writes `count` numbers to element `index` of a message, and what of them is left by rounding back to `values`.
  void put(void* message, std::size_t index, float* values, std::size_t count) const;
  /// Adds elements [index, index + count) of a message to `values`.
  void add(float* values, const void* message, std::size_t index, std::size_t count) const;

 private:
  taccDataType_t type_;
};

}  // namespace tacc
