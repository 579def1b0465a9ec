// The choice of the instruction set.
#include "compute/simd/isa.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "compute/reduce/reduce.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

TEST(Isa, BestIsTheFirstAvailable) { EXPECT_EQ(bestIsa("best").name, availableIsas().front().name); }

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
    EXPECT_NE(text.find("scalar, sse4, avx2, avx512, amx, neon, best"), std::string::npos) << text;
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

TEST(Isa, EnvironmentDecides) {
  const char* wanted = std::getenv("TACC_ISA");
  EXPECT_EQ(reduceIsa(), bestIsa(wanted == nullptr ? "best" : wanted).name);
}

}  // namespace
}  // namespace tacc
