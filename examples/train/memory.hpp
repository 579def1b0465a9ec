// Memory as the two libraries want it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "errors.hpp"

namespace tacc::train {

/// Zeroed numbers at a multiple of 64 bytes, for tensors and workspaces of tacc/compute.h.
class Floats {
 public:
  explicit Floats(std::size_t count = 0) : count_(count) {
    constexpr std::size_t alignment = 64;
    const std::size_t bytes = (count * sizeof(float) / alignment + 1) * alignment;
    data_.reset(static_cast<float*>(std::aligned_alloc(alignment, bytes)));
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0, bytes);
  }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::size_t size() const { return count_; }
  float& operator[](std::size_t index) { return data_.get()[index]; }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::unique_ptr<float, Free> data_;
  std::size_t count_;
};

/// A model's numbers in library memory, which other ranks of the host read without a copy. Zeroed.
class SharedFloats {
 public:
  explicit SharedFloats(std::size_t count) : count_(count) { check(taccMemAlloc(&data_, count * sizeof(float))); }
  ~SharedFloats() { taccMemFree(data_); }
  SharedFloats(const SharedFloats&) = delete;
  SharedFloats& operator=(const SharedFloats&) = delete;
  float* data() { return static_cast<float*>(data_); }
  const float* data() const { return static_cast<const float*>(data_); }
  std::size_t size() const { return count_; }

 private:
  void* data_ = nullptr;
  std::size_t count_;
};

/// What a rank trains: all weights in one piece, and all gradients in another, so that either is one message.
struct Parameters {
  explicit Parameters(std::size_t count) : weights(count), gradients(count) {}
  SharedFloats weights, gradients;
};

}  // namespace tacc::train
