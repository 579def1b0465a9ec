// What a fuzz target is made of. Every file of this folder is one target: a function that takes any bytes, and the
// bytes to begin with. driver.cpp runs it with mutations from a fixed seed; with clang, libFuzzer runs it (./dev fuzz).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/error.hpp"

namespace tacc::fuzz {

using Bytes = std::vector<std::uint8_t>;

/// Inputs as the library itself makes them. Each target defines it.
std::vector<Bytes> seeds();

/// Ends the program with a sentence on standard error unless it holds.
void require(bool holds, const char* what);

/// Runs what may refuse its input with an Error, which then has to say something; anything else thrown ends the
/// program. What it returns is a target's own result.
template <class Work>
int mayRefuse(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    require(*error.what() != '\0', "an Error without a word");
  }
  return 0;
}

inline Bytes bytesOf(std::string_view text) { return {text.begin(), text.end()}; }

/// Reads an input from its beginning. Where it has ended, zeros follow.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) noexcept : rest_(data, size) {}

  bool isOver() const noexcept { return rest_.empty(); }
  std::uint8_t byte() noexcept { return value<std::uint8_t>(); }
  /// From 0 to `end` - 1; `end` is at most 256.
  int below(int end) noexcept { return byte() % end; }
  /// A plain value, byte by byte.
  template <class Value>
  requires std::is_trivially_copyable_v<Value> Value value()
  noexcept {
    Value result{};
    const auto some = bytes(sizeof result);
    if (!some.empty()) std::memcpy(static_cast<void*>(&result), some.data(), some.size());
    return result;
  }
  /// `count` bytes, or as many as are left.
  std::span<const std::uint8_t> bytes(std::size_t count) noexcept {
    const auto first = rest_.first(count < rest_.size() ? count : rest_.size());
    rest_ = rest_.subspan(first.size());
    return first;
  }
  std::string text(std::size_t count) {
    const auto some = bytes(count);
    return {some.begin(), some.end()};
  }
  std::string restAsText() { return text(rest_.size()); }

 private:
  std::span<const std::uint8_t> rest_;
};

/// Writes what Input reads.
class Output {
 public:
  Output& byte(int value) {
    bytes_.push_back(static_cast<std::uint8_t>(value));
    return *this;
  }
  template <class Value>
  requires std::is_trivially_copyable_v<Value> Output& value(const Value& value) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof value);
    return *this;
  }
  template <class Range>
  Output& range(const Range& range) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(std::data(range));
    bytes_.insert(bytes_.end(), begin, begin + std::size(range) * sizeof *std::data(range));
    return *this;
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
