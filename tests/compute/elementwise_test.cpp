// Copies, multiplication by a factor, and the conversions of the 16-bit types.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compute/reduce/kernel_table.hpp"
#include "guarded_buffer.hpp"
#include "isa_parameter.hpp"
#include "reference.hpp"

namespace tacc::test {
namespace {

class Elementwise : public testing::TestWithParam<Isa> {
 protected:
  const KernelTable table_ = makeKernelTable(GetParam());
};

std::uint32_t bitsOf(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <class T>
void checkWiden(WidenKernel kernel) {
  std::vector<T> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> result(all.size());
  kernel(result.data(), all.data(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(isSame(result[i], widen(all[i]))) << fmt::format("{:#x} gives {:#x}", i, bitsOf(result[i]));
  }
}

TEST_P(Elementwise, WidensEveryPattern) {
  checkWiden<Half>(table_.widen[taccFloat16]);
  checkWiden<Brain>(table_.widen[taccBfloat16]);
}

/// Values near every boundary between two neighbours, and random patterns.
template <class T>
std::vector<float> valuesToNarrow() {
  std::vector<float> values;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = widen(T{static_cast<std::uint16_t>(bits)});
    values.push_back(value);
    if (!std::isfinite(value)) continue;
    const float next = widen(T{static_cast<std::uint16_t>(bits + 1)});
    const double middle = (static_cast<double>(value) + static_cast<double>(next)) / 2;
    if (!std::isfinite(middle)) continue;
    const float tie = static_cast<float>(middle);
    values.insert(values.end(), {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 2 * tie)});
  }
  for (const float value : {65519.0f, 65519.996f, 65520.0f, 1e6f, 3.4e38f, 3.3895314e38f, 1e-45f}) {
    values.insert(values.end(), {value, -value});
  }
  std::mt19937 random(3);
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
  }
  return values;
}

template <class T>
void checkNarrow(NarrowKernel kernel) {
  const std::vector<float> values = valuesToNarrow<T>();
  std::vector<T> result(values.size());
  kernel(result.data(), values.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Bits, of NaN too.
    ASSERT_EQ(result[i].bits, narrow<T>(values[i]).bits) << fmt::format("{:#x}", bitsOf(values[i]));
  }
}

TEST_P(Elementwise, NarrowsToNearestEven) {
  checkNarrow<Half>(table_.narrow[taccFloat16]);
  checkNarrow<Brain>(table_.narrow[taccBfloat16]);
}

TEST_P(Elementwise, ConversionsStayInTheirBuffers) {
  for (const taccDataType_t type : {taccFloat16, taccBfloat16}) {
    for (std::size_t count = 0; count < 70; ++count) {
      PageBuffer halfPages(1), floatPages(1);
      auto* halves = reinterpret_cast<Half*>(halfPages.atEnd(count * 2));
      auto* floats = reinterpret_cast<float*>(floatPages.atEnd(count * 4));
      for (std::size_t i = 0; i < count; ++i) floats[i] = static_cast<float>(i);
      table_.narrow[type](halves, floats, count);
      std::fill_n(floats, count, -1.0f);
      table_.widen[type](floats, halves, count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(floats[i], static_cast<float>(i));
    }
  }
}

template <class T>
void checkMultiply(MultiplyKernel kernel, bool inPlace) {
  std::mt19937_64 random(5);
  for (std::size_t count = 0; count < 300; count += count < 80 ? 1 : 37) {
    GuardedBuffer source(count * sizeof(T), sizeof(T)), destination(count * sizeof(T), 0);
    std::vector<T> expected(count);
    const T factor = randomValue<T>(random);
    for (std::size_t i = 0; i < count; ++i) {
      const T value = source.as<T>()[i] = randomValue<T>(random);
      expected[i] = fromWide<T>(combine(taccProd, toWide(value), toWide(factor)));
    }
    GuardedBuffer& result = inPlace ? source : destination;
    kernel(result.as<T>(), source.as<T>(), &factor, count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(isSame(result.as<T>()[i], expected[i])) << "count " << count << " element " << i;
    }
    ASSERT_TRUE(source.isIntact() && destination.isIntact()) << "count " << count;
  }
}

TEST_P(Elementwise, MultipliesByFactor) {
  for (const taccDataType_t type : allTypes) {
    SCOPED_TRACE(nameOf(type));
    for (const bool inPlace : {false, true}) {
      withType(type, [&](auto zero) { checkMultiply<decltype(zero)>(table_.multiply[type], inPlace); });
    }
  }
}

TEST_P(Elementwise, CopiesToEveryDestination) {
  std::mt19937_64 random(9);
  for (const int destinationCount : {1, 2, 3, 5}) {
    for (const std::size_t bytes : {0, 1, 2, 3, 5, 63, 64, 65, 200, 1000, 4096, 70001}) {
      for (const std::size_t offset : {0, 1, 32}) {
        for (const bool streaming : {false, true}) {
          GuardedBuffer source(bytes, offset * 2 % 64);
          for (std::size_t i = 0; i < bytes; ++i) source.as<unsigned char>()[i] = static_cast<unsigned char>(random());
          std::vector<std::unique_ptr<GuardedBuffer>> destinations;
          std::vector<void*> pointers;
          for (int k = 0; k < destinationCount; ++k) {
            destinations.push_back(std::make_unique<GuardedBuffer>(bytes, offset * static_cast<std::size_t>(k) % 64));
            pointers.push_back(destinations.back()->as<unsigned char>());
          }
          const void* from = source.as<unsigned char>();
          table_.copy({pointers.data(), destinationCount, &from, 1, bytes, 1, streaming});
          const auto areEqual = [&] {
            for (const auto& destination : destinations) {
              if (bytes != 0 && std::memcmp(destination->as<unsigned char>(), from, bytes) != 0) return false;
              if (!destination->isIntact()) return false;
            }
            return true;
          };
          ASSERT_TRUE(areEqual()) << destinationCount << " destinations, " << bytes << " bytes, offset " << offset;
          for (void* to : pointers) std::memset(to, 0, bytes);
          copyBytes(pointers.data(), destinationCount, from, bytes, streaming);
          ASSERT_TRUE(areEqual()) << "copyBytes " << destinationCount << ", " << bytes << " bytes, offset " << offset;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllIsas, Elementwise, testing::ValuesIn(availableIsas()), nameOfIsa);

}  // namespace
}  // namespace tacc::test
