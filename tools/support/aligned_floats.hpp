// Tensors of programs that time kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tacc::tools {

/// Floats, aligned to a page.
class AlignedFloats {
 public:
  explicit AlignedFloats(std::size_t count);
  float* data() { return floats_.get(); }
  const float* data() const { return floats_.get(); }
  std::size_t size() const { return count_; }

 private:
  struct Free {
    void operator()(float* floats) const;
  };
  std::unique_ptr<float, Free> floats_;
  std::size_t count_;
};

/// Numbers from -2 to 2.
void fillWithSmallIntegers(AlignedFloats& floats, std::uint32_t seed);

}  // namespace tacc::tools
