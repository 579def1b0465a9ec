#include "engine/signature.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>

#include "core/types.hpp"

namespace tacc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Signature, CallsAreDescribedByTheirParts) {
  EXPECT_EQ(describeSignature(makeSignature(Collective::allReduce, taccFloat32, taccSum, 0, 1000)),
            "allreduce(count 1000, float, sum)");
  EXPECT_EQ(describeSignature(makeSignature(Collective::broadcast, taccInt32, taccSum, 2, 5)),
            "broadcast(count 5, int32, root 2)");
  EXPECT_EQ(describeSignature(makeSignature(Collective::barrier, taccInt8, taccSum, 0, 0)), "barrier()");
}

// Every number of a collective, type and operation that fits into a signature, as a peer may write it.
TEST(Signature, AnyBitsAreDescribed) {
  for (std::uint64_t low = 0; low < std::uint64_t{1} << 15; ++low)
    for (const std::uint64_t high : {std::uint64_t{0}, std::uint64_t{unequalRoot}, (std::uint64_t{7} << 16) + 3}) {
      const std::uint64_t signature = high << 15 | low;
      const std::string text = describeSignature(signature);
      const int collective = static_cast<int>(collectiveIn(signature));
      ASSERT_THAT(text, StartsWith(collective > collectiveCount ? std::string("no call (signature 0x")
                                                                : std::string(nameOf(collectiveIn(signature)))));
      if (collective < collectiveCount && !isValid(typeIn(signature))) {
        ASSERT_THAT(text, HasSubstr("invalid type"));
      }
    }
}

}  // namespace
}  // namespace tacc
