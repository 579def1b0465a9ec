#include "comm/bootstrap/handshake.hpp"

#include <gtest/gtest.h>

namespace tacc {
namespace {

class HandshakeTest : public testing::Test {
 protected:
  Secret secret_ = openUniqueId(makeUniqueId()).secret;
  Secret otherSecret_ = openUniqueId(makeUniqueId()).secret;
  Challenge challenge_{makeNonce()};
  Introduction who_ = introduceSelf(4, 2);
  Introduction root_ = introduceSelf(4, 0);
};

TEST_F(HandshakeTest, BothEndsConvinceEachOther) {
  const Hello hello = answerChallenge(secret_, challenge_, who_);
  EXPECT_TRUE(isGenuine(secret_, challenge_, hello));
  EXPECT_TRUE(isGenuine(secret_, challenge_, hello, answerHello(secret_, challenge_, hello, root_)));
}

TEST_F(HandshakeTest, AWrongSecretConvincesNobody) {
  const Hello hello = answerChallenge(otherSecret_, challenge_, who_);
  EXPECT_FALSE(isGenuine(secret_, challenge_, hello));
  EXPECT_FALSE(isGenuine(secret_, challenge_, hello, answerHello(otherSecret_, challenge_, hello, root_)));
}

TEST_F(HandshakeTest, ARecordedConversationIsWorthless) {
  const Hello hello = answerChallenge(secret_, challenge_, who_);
  EXPECT_FALSE(isGenuine(secret_, {makeNonce()}, hello));
  const Welcome welcome = answerHello(secret_, challenge_, hello, root_);
  const Hello second = answerChallenge(secret_, challenge_, who_);
  EXPECT_FALSE(isGenuine(secret_, challenge_, second, welcome));
}

TEST_F(HandshakeTest, WhoJoinsIsPartOfTheProof) {
  Hello hello = answerChallenge(secret_, challenge_, who_);
  hello.who.rank = 3;
  EXPECT_FALSE(isGenuine(secret_, challenge_, hello));
}

TEST_F(HandshakeTest, OneEndsProofIsNotTheOthers) {
  const Hello hello = answerChallenge(secret_, challenge_, who_);
  EXPECT_FALSE(isGenuine(secret_, challenge_, hello, Welcome{root_, hello.proof}));
}

}  // namespace
}  // namespace tacc
