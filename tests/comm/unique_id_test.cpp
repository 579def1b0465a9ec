#include "comm/bootstrap/unique_id.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <string>

#include "core/error.hpp"

namespace tacc {
namespace {

using testing::HasSubstr;

std::string refusalOf(const taccUniqueId& id) {
  try {
    openUniqueId(id);
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(UniqueId, OpensWhatItMade) {
  const UniqueIdContents a = openUniqueId(makeUniqueId());
  const UniqueIdContents b = openUniqueId(makeUniqueId());
  EXPECT_NE(a.secret, b.secret);
  EXPECT_NE(rendezvousName(a), rendezvousName(b));
  EXPECT_EQ(rendezvousName(a), rendezvousName(a));
}

TEST(UniqueId, TheNameOfTheRendezvousDoesNotHoldTheSecret) {
  const UniqueIdContents contents = openUniqueId(makeUniqueId());
  const std::string name = rendezvousName(contents);
  EXPECT_LE(name.size(), 100u);
  std::string secret;
  for (const unsigned char byte : contents.secret) secret += fmt::format("{:02x}", byte);
  for (std::size_t i = 0; i + 8 <= secret.size(); i += 2)
    EXPECT_THAT(name, testing::Not(HasSubstr(secret.substr(i, 8))));
}

TEST(UniqueId, SaysWhatIsWrong) {
  taccUniqueId id;
  std::memset(id.internal, 0, sizeof id.internal);
  EXPECT_THAT(refusalOf(id), HasSubstr("all zero"));
  std::memset(id.internal, 'x', sizeof id.internal);
  EXPECT_THAT(refusalOf(id), HasSubstr("no unique id"));
}

TEST(UniqueId, NoticesEveryChangedByte) {
  const taccUniqueId good = makeUniqueId();
  for (std::size_t i = 0; i < sizeof good.internal; ++i) {
    taccUniqueId bad = good;
    bad.internal[i] = static_cast<char>(bad.internal[i] ^ 0x20);
    EXPECT_NE(refusalOf(bad), "accepted") << "byte " << i;
  }
  taccUniqueId cut = good;  // as after a copy that stops at a zero or a newline
  std::memset(cut.internal + 60, 0, sizeof cut.internal - 60);
  EXPECT_THAT(refusalOf(cut), HasSubstr("damaged"));
  EXPECT_EQ(refusalOf(good), "accepted");
}

}  // namespace
}  // namespace tacc
