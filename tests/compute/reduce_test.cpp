// Every type, operation and instruction set against the plain reference, with equal bits.
#include "compute/reduce/reduce.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "compute/reduce/kernel_table.hpp"
#include "guarded_buffer.hpp"
#include "isa_parameter.hpp"
#include "reference.hpp"

namespace tacc::test {
namespace {

constexpr int maxSources = 33;
constexpr std::size_t maxCount = 20011;

struct Case {
  taccRedOp_t op;
  int sources, destinations;
  std::size_t count;
  int divisor = 1;
  bool streaming = false;
  int inPlace = -1;        // the source that is the first destination; -1: none
  std::size_t offset = 0;  // elements by which the buffers are off a 64-byte boundary, each by another multiple
};

std::string describe(const Case& c) {
  return fmt::format("op {} sources {} destinations {} count {} divisor {} streaming {} in place {} offset {}",
                     static_cast<int>(c.op), c.sources, c.destinations, c.count, c.divisor, c.streaming, c.inPlace,
                     c.offset);
}

/// Inputs of type T that all cases share.
template <class T>
const std::vector<std::vector<T>>& inputs() {
  static const std::vector<std::vector<T>> values = [] {
    std::mt19937_64 random(7);
    std::vector<std::vector<T>> all(maxSources, std::vector<T>(maxCount));
    for (auto& source : all) {
      for (T& value : source) value = randomValue<T>(random);
    }
    return all;
  }();
  return values;
}

template <class T>
void check(ReduceFunction kernel, const Case& c) {
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  const auto add = [&](std::size_t shift) {
    buffers.push_back(std::make_unique<GuardedBuffer>(c.count * sizeof(T), shift * c.offset * sizeof(T) % 64));
    return buffers.back()->template as<T>();
  };
  std::vector<const T*> expected;
  std::vector<const void*> sources;
  std::vector<void*> destinations;
  for (int k = 0; k < c.sources; ++k) {
    expected.push_back(inputs<T>()[static_cast<std::size_t>(k)].data());
    T* source = add(static_cast<std::size_t>(k));
    std::copy_n(expected.back(), c.count, source);
    sources.push_back(source);
    if (k == c.inPlace) destinations.push_back(source);
  }
  while (static_cast<int>(destinations.size()) < c.destinations) destinations.push_back(add(destinations.size() + 1));

  kernel({destinations.data(), c.destinations, sources.data(), c.sources, c.count, c.divisor, c.streaming});

  for (std::size_t i = 0; i < c.count; ++i) {
    const T value = reduceElement<T>(c.op, expected, i, c.divisor);
    for (const void* destination : destinations) {
      ASSERT_TRUE(isSame(static_cast<const T*>(destination)[i], value)) << describe(c) << " element " << i;
    }
  }
  for (int k = 0; k < c.sources; ++k) {
    if (k == c.inPlace) continue;
    ASSERT_TRUE(c.count == 0 || std::memcmp(sources[static_cast<std::size_t>(k)], expected[static_cast<std::size_t>(k)],
                                            c.count * sizeof(T)) == 0)
        << describe(c) << " changed source " << k;
  }
  for (const auto& buffer : buffers) ASSERT_TRUE(buffer->isIntact()) << describe(c) << " wrote outside a buffer";
}

class Reduce : public testing::TestWithParam<std::tuple<Isa, taccDataType_t>> {
 protected:
  void run(const Case& c) {
    const auto [isa, type] = GetParam();
    const ReduceFunction kernel = makeKernelTable(isa).reduce[type][c.op];
    withType(type, [&](auto value) { check<decltype(value)>(kernel, c); });
  }
};

constexpr int sourceCounts[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};

TEST_P(Reduce, AgreesWithReference) {
  std::mt19937 random(11);
  for (const taccRedOp_t op : allOps) {
    for (const int sources : sourceCounts) {
      for (const int destinations : {1, 2, 3}) {
        for (const std::size_t count : {0, 1, 2, 3, 7, 15, 16, 17, 31, 63, 64, 65, 100, 1023}) {
          Case c{op, sources, destinations, count};
          run(c);
          c.streaming = random() % 2 != 0;
          c.divisor = op == taccSum ? static_cast<int>(1 + random() % 40) : 1;
          c.inPlace = static_cast<int>(random() % static_cast<unsigned>(sources + 1)) - 1;
          c.offset = random() % 8;
          run(c);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Reduce, CrossesTilesOfManySources) {
  for (const int sources : {2, 9, 17, 33}) {
    for (const std::size_t count : {std::size_t{2049}, std::size_t{8193}, maxCount}) {
      for (const bool streaming : {false, true}) {
        run({taccSum, sources, 2, count, 1, streaming, sources - 1, 3});
        run({taccSum, sources, 1, count, sources, streaming, 0, 1});
        run({taccMax, sources, 1, count, 1, streaming, -1, 0});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Reduce, EveryOffsetAndSmallCount) {
  for (std::size_t count = 1; count <= 140; ++count) {
    for (std::size_t offset = 0; offset < 4; ++offset) {
      run({taccSum, 2, 1, count, 1, offset % 2 != 0, static_cast<int>(offset) - 2, offset});
      run({taccProd, 3, 2, count, 1, offset % 2 == 0, 2, offset});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Reduce, ThousandSources) {
  const auto [isa, type] = GetParam();
  const ReduceFunction kernel = makeKernelTable(isa).reduce[type][taccSum];
  withType(type, [&](auto zero) {
    using T = decltype(zero);
    constexpr std::size_t count = 301;
    std::vector<const T*> sources;
    for (std::size_t k = 0; k < 1024; ++k) sources.push_back(inputs<T>()[k % maxSources].data() + k);
    const std::vector<const void*> pointers(sources.begin(), sources.end());
    GuardedBuffer result(count * sizeof(T), 0);
    void* destination = result.as<T>();
    kernel({&destination, 1, pointers.data(), 1024, count, 1, false});
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(isSame(result.as<T>()[i], reduceElement<T>(taccSum, sources, i, 1))) << "element " << i;
    }
    EXPECT_TRUE(result.isIntact());
  });
}

TEST_P(Reduce, TouchesNothingBeyondItsPages) {
  const taccDataType_t type = std::get<1>(GetParam());
  const KernelTable table = makeKernelTable(std::get<0>(GetParam()));
  withType(type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<std::unique_ptr<PageBuffer>> pages;
    for (int k = 0; k < 19; ++k) pages.push_back(std::make_unique<PageBuffer>(4));
    for (const bool atEnd : {false, true}) {
      for (std::size_t count = 1; count <= 16384 / sizeof(T); count += count < 150 ? 1 : 977) {
        for (const int sources : {1, 2, 4, 18}) {
          const auto place = [&](std::size_t k) {
            return reinterpret_cast<T*>(atEnd ? pages[k]->atEnd(count * sizeof(T)) : pages[k]->atBegin());
          };
          std::vector<const T*> expected;
          std::vector<const void*> pointers;
          for (std::size_t k = 0; k < static_cast<std::size_t>(sources); ++k) {
            expected.push_back(inputs<T>()[k].data());
            std::copy_n(expected.back(), count, place(k));
            pointers.push_back(place(k));
          }
          void* destination = place(18);
          table.reduce[type][taccSum]({&destination, 1, pointers.data(), sources, count, 1, count % 2 == 0});
          for (std::size_t i = 0; i < count; ++i) {
            ASSERT_TRUE(isSame(place(18)[i], reduceElement<T>(taccSum, expected, i, 1)))
                << "sources " << sources << " count " << count << " element " << i;
          }
        }
      }
    }
  });
}

std::string nameOfParameters(const testing::TestParamInfo<std::tuple<Isa, taccDataType_t>>& parameter) {
  return fmt::format("{}_{}", std::get<0>(parameter.param).name, typeNames[std::get<1>(parameter.param)]);
}
INSTANTIATE_TEST_SUITE_P(AllKernels, Reduce,
                         testing::Combine(testing::ValuesIn(availableIsas()), testing::ValuesIn(allTypes)),
                         nameOfParameters);

TEST(ReduceKernel, IsTheKernelOfTheChosenIsa) {
  const KernelTable table = makeKernelTable(chooseIsa());
  EXPECT_EQ(reduceIsa(), table.isa);
  for (const taccDataType_t type : allTypes) {
    for (const taccRedOp_t op : allOps) EXPECT_EQ(reduceKernel(type, op).kernel(), table.reduce[type][op]);
    EXPECT_EQ(reduceKernel(type, taccAvg).kernel(), reduceKernel(type, taccSum).kernel());
  }
}

}  // namespace
}  // namespace tacc::test
