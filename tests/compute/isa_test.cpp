// The choice of the instruction set.
#include "compute/simd/isa.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/layers/kernels.hpp"
#include "compute/reduce/reduce.hpp"
#include "compute/simd/cpu_targets.hpp"
#include "compute/simd/targets.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

TEST(Isa, BestIsTheFirstAvailable) { EXPECT_EQ(bestIsa("best").name, availableIsas().front().name); }

// Highway's own answer is in its shared library, which only this test needs.
TEST(Isa, CpuHasWhatHighwayFinds) {
  std::int64_t known = 0;
  for (const InstructionSet& one : instructionSetsFrom("best")) known |= one.targets;
  known &= ~(HWY_SCALAR | HWY_EMU128);
  EXPECT_EQ(findCpuTargets(), hwy::SupportedTargets() & known);
}

TEST(Isa, EveryAvailableOneCanBeChosen) {
  for (const Isa& isa : availableIsas()) {
    EXPECT_EQ(bestIsa(isa.name).name, isa.name);
    EXPECT_EQ(bestIsa(isa.name).target, isa.target);
  }
}

TEST(Isa, UnknownNameListsWhatIsAllowed) {
  try {
    bestIsa("avx1024");
    FAIL() << "avx1024 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidArgument);
    const std::string text = error.what();
    EXPECT_NE(text.find("avx1024"), std::string::npos) << text;
    EXPECT_NE(text.find("amx, avx512, avx2, sse4, neon, scalar, best"), std::string::npos) << text;
  }
}

TEST(Isa, OfAnotherKindOfCpuIsRefused) {
  const char* foreign = availableIsas().front().name == "neon" ? "avx2" : "neon";
  try {
    bestIsa(foreign);
    FAIL() << foreign << " was accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(availableIsas().front().name), std::string::npos) << text;
  }
}

bool isForThisCpu(std::string_view name) {
  try {
    return !bestIsa(name).name.empty();
  } catch (const Error&) {
    return false;
  }
}

TEST(Isa, EveryWordChoosesKernelsOfConvolutionsAndLayers) {
  const std::vector<const conv::KernelSet*> sets = conv::availableKernels();
  auto widest = sets.begin();
  for (const InstructionSet& one : instructionSetsFrom("best")) {
    SCOPED_TRACE(one.name);
    if (!isForThisCpu(one.name)) {
      EXPECT_THROW(conv::bestKernels(one.name), Error);
      continue;
    }
    const conv::KernelSet& chosen = conv::bestKernels(one.name);
    const auto place = std::ranges::find(sets, &chosen);
    ASSERT_NE(place, sets.end());
    EXPECT_GE(place, widest) << "wider than what a word before it chooses";
    widest = place;
    EXPECT_EQ(layers::kernelTable(chosen.vectors).isa, chosen.vectors);
  }
}

TEST(Isa, KernelsThatTheCpuHasAreChosenByTheirWord) {
  const std::vector<const conv::KernelSet*> sets = conv::availableKernels();
  EXPECT_EQ(&conv::bestKernels("best"), sets.front());
  EXPECT_EQ(sets.back(), &conv::portableKernels());
  for (const conv::KernelSet* const set : sets) {
    if (set == &conv::portableKernels()) continue;  // it has no word alone
    EXPECT_EQ(&conv::bestKernels(set->isa), set) << set->isa;
  }
  EXPECT_EQ(&conv::bestKernels("scalar"), &conv::portableKernels());
}

TEST(Isa, UnknownOneIsAnErrorForAllKernels) {
  EXPECT_THROW(conv::bestKernels("avx1024"), Error);
  EXPECT_THROW(layers::kernelTable("avx1024"), Error);
  EXPECT_THROW(layers::kernelTable(""), Error);
}

TEST(Isa, EnvironmentDecides) {
  const char* wanted = std::getenv("TACC_ISA");
  EXPECT_EQ(reduceIsa(), bestIsa(wanted == nullptr ? "best" : wanted).name);
}

}  // namespace
}  // namespace tacc
