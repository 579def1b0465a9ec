// Who is let in at a rank's TCP port.
#include "transports/tcp/tcp_visitors.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <vector>

#include "transports/tcp/tcp.hpp"

namespace tacc::test {
namespace {

constexpr int self = 2;
constexpr std::size_t ranks = 4;

class TcpVisitorsTest : public testing::Test {
 protected:
  TcpVisitorsTest() : own_(self, ranks, secret_), visitors_(own_), listener_(bindTcp(0)) {
    EXPECT_EQ(::listen(listener_.get(), 256), 0);
    for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
      others_.push_back(std::make_unique<TcpCredentials>(rank, ranks, secret_));
      others_.back()->setPublicKey(self, own_.publicKey());
      if (rank != self) own_.setPublicKey(rank, others_.back()->publicKey());
    }
  }

  /// A connection from `host` to the port.
  FileDescriptor visit(InetAddress::V4 host = {127, 0, 0, 1}) {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage storage;
    socklen_t length = InetAddress(host).fill(storage);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), length), 0);
    length = InetAddress(InetAddress::V4{127, 0, 0, 1}, portOf(listener_.get())).fill(storage);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), length), 0);
    return socket;
  }

  /// What the visitor is asked.
  static TcpChallenge challengeOf(const FileDescriptor& socket) {
    TcpChallenge challenge;
    EXPECT_EQ(::recv(socket.get(), &challenge, sizeof challenge, MSG_WAITALL), static_cast<ssize_t>(sizeof challenge));
    return challenge;
  }

  TcpHello hello(int from, const TcpChallenge& challenge) {
    return greetBack(*others_[static_cast<std::size_t>(from)]->keyWith(self), challenge, from, self);
  }

  static void say(const FileDescriptor& socket, const void* bytes, std::size_t count) {
    EXPECT_EQ(::send(socket.get(), bytes, count, MSG_NOSIGNAL), static_cast<ssize_t>(count));
  }

  int accept() {
    pollfd waiting{listener_.get(), POLLIN, 0};
    ::poll(&waiting, 1, 2000);
    const std::optional<int> visitor = visitors_.accept(listener_.get());
    EXPECT_TRUE(visitor.has_value());
    return visitor.value_or(-1);
  }

  /// The guest that this visitor has become, if it has.
  std::optional<TcpVisitors::Guest> hear(int visitor) {
    pollfd speaking{visitors_.descriptorOf(visitor), POLLIN, 0};
    ::poll(&speaking, 1, 2000);
    visitors_.listen(visitor);
    return visitors_.nextGuest();
  }

  static bool isClosed(const FileDescriptor& socket) {
    std::byte bytes[256];
    for (;;) {
      pollfd waiting{socket.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 2000) != 1) return false;
      if (::recv(socket.get(), bytes, sizeof bytes, MSG_DONTWAIT) <= 0) return true;
    }
  }
  static bool isOpen(const FileDescriptor& socket) {
    std::byte bytes[256];
    ssize_t got = 0;
    do got = ::recv(socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    while (got > 0);
    return got < 0 && errno == EAGAIN;
  }

  Key secret_ = makeNonce();
  TcpCredentials own_;
  TcpVisitors visitors_;
  FileDescriptor listener_;
  std::vector<std::unique_ptr<TcpCredentials>> others_;
};

TEST_F(TcpVisitorsTest, ARankIsLetInAndKnowsThatThisIsTheOne) {
  const FileDescriptor socket = visit();
  const int visitor = accept();
  const TcpChallenge challenge = challengeOf(socket);
  const TcpHello greeting = hello(3, challenge);
  say(socket, &greeting, sizeof greeting);
  const auto guest = hear(visitor);
  ASSERT_TRUE(guest.has_value());
  EXPECT_EQ(guest->rank, 3);
  EXPECT_TRUE(visitors_.isEmpty());
  for (const TcpVerdict verdict : {TcpVerdict::taken, TcpVerdict::refused}) {
    const Key& key = *others_[3]->keyWith(self);
    TcpAnswer answer = answerHello(*own_.keyWith(3), guest->challenge, guest->hello, verdict);
    EXPECT_TRUE(isGenuine(key, challenge, greeting, answer));
    answer.verdict = verdict == TcpVerdict::taken ? TcpVerdict::refused : TcpVerdict::taken;
    EXPECT_FALSE(isGenuine(key, challenge, greeting, answer));
    answer = {verdict, greeting.proof};  // what it has said itself
    EXPECT_FALSE(isGenuine(key, challenge, greeting, answer));
  }
}

/// What an adversary may say that has seen everything, and knows everything but the keys of others.
TEST_F(TcpVisitorsTest, NobodyElseIs) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const FileDescriptor first = visit();
  const int seen = accept();
  const TcpHello recorded = hello(3, challengeOf(first));
  say(first, &recorded, sizeof recorded);
  ASSERT_TRUE(hear(seen).has_value());
  TcpCredentials stranger(3, ranks, makeNonce());
  stranger.setPublicKey(self, own_.publicKey());
  for (int turn = 0; turn < 400; ++turn) {
    const FileDescriptor socket = visit();
    const int visitor = accept();
    const TcpChallenge challenge = challengeOf(socket);
    TcpHello words = hello(3, challenge);
    switch (turn % 8) {
      case 0: {  // any bit changed
        const std::size_t bit = random() % (sizeof words * 8);
        reinterpret_cast<unsigned char*>(&words)[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
        break;
      }
      case 1:
        words = recorded;
        break;
      case 2:  // a rank of the job that claims to be another one
        words = greetBack(*others_[1]->keyWith(self), challenge, 3, self);
        break;
      case 3:  // that knows the public keys alone
        words = greetBack(*stranger.keyWith(self), challenge, 3, self);
        break;
      case 4:  // to somebody else
        words = greetBack(*others_[3]->keyWith(self), challenge, 3, 1);
        break;
      case 5:  // this rank itself, or none
        words.from = turn % 16 == 5 ? self : static_cast<std::uint32_t>(ranks + random() % 3);
        break;
      case 6:  // what this rank has said as the other end
        words.proof = answerHello(*own_.keyWith(3), challenge, words, TcpVerdict::taken).proof;
        break;
      default:
        for (std::size_t i = 0; i < sizeof words; ++i)
          reinterpret_cast<unsigned char*>(&words)[i] = static_cast<unsigned char>(random());
    }
    say(socket, &words, sizeof words);
    EXPECT_FALSE(hear(visitor).has_value()) << "case " << turn % 8;
    EXPECT_TRUE(visitors_.isEmpty());
    EXPECT_TRUE(isClosed(socket));
  }
}

TEST_F(TcpVisitorsTest, AGreetingThatIsCutAnywhereHindersNobody) {
  for (std::size_t cut = 0; cut < sizeof(TcpHello); ++cut) {
    FileDescriptor half = visit();
    const int silent = accept();
    TcpHello greeting = hello(3, challengeOf(half));
    if (cut > 0) {
      say(half, &greeting, cut);
      EXPECT_FALSE(hear(silent).has_value());
    }
    const FileDescriptor whole = visit();
    const int visitor = accept();
    greeting = hello(3, challengeOf(whole));
    say(whole, &greeting, sizeof greeting);
    EXPECT_TRUE(hear(visitor).has_value());
    half.reset();
    EXPECT_FALSE(hear(silent).has_value());
    EXPECT_TRUE(visitors_.isEmpty());
  }
}

TEST_F(TcpVisitorsTest, ManySilentOnesPushOutTheOldest) {
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(visit());
    accept();
  }
  EXPECT_TRUE(isClosed(strangers.front()));
  EXPECT_TRUE(isOpen(strangers.back()));
  EXPECT_EQ(std::ranges::count_if(strangers, isOpen), 64 + static_cast<int>(ranks));
}

/// A rank that is slow to answer stays however many come from where no rank is, and so does one whose answer has come
/// and is not read yet, wherever the others come from.
TEST_F(TcpVisitorsTest, AFloodKeepsNoRankOut) {
  visitors_.addHost(InetAddress(InetAddress::V4{127, 0, 0, 1}).v6());
  const FileDescriptor slow = visit();
  const int visitor = accept();
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(visit({127, 0, 0, 2}));
    accept();
  }
  const TcpHello greeting = hello(3, challengeOf(slow));
  say(slow, &greeting, sizeof greeting);
  const auto guest = hear(visitor);
  ASSERT_TRUE(guest.has_value());
  EXPECT_EQ(guest->rank, 3);
  strangers.clear();

  const FileDescriptor unread = visit();
  accept();
  const TcpHello second = hello(1, challengeOf(unread));
  say(unread, &second, sizeof second);
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(visit());
    accept();
  }
  const auto other = visitors_.nextGuest();
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->rank, 1);
}

TEST(TcpCredentials, APairsKeyIsTheSameAtBothEndsAndNowhereElse) {
  const Key secret = makeNonce();
  std::vector<std::unique_ptr<TcpCredentials>> all;
  for (int rank = 0; rank < 4; ++rank) all.push_back(std::make_unique<TcpCredentials>(rank, 4, secret));
  std::vector<Key> keys;
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      const auto at = [&](int rank) -> TcpCredentials& { return *all[static_cast<std::size_t>(rank)]; };
      at(a).setPublicKey(b, at(b).publicKey());
      at(b).setPublicKey(a, at(a).publicKey());
      ASSERT_TRUE(at(a).keyWith(b) && at(b).keyWith(a));
      EXPECT_EQ(*at(a).keyWith(b), *at(b).keyWith(a));
      if (a < b) keys.push_back(*at(a).keyWith(b));
    }
  std::ranges::sort(keys);
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
  TcpCredentials other(0, 2, makeNonce());
  other.setPublicKey(1, Key{});  // no public key gives nothing that could be guessed
  EXPECT_FALSE(other.keyWith(1).has_value());
}

TEST(TcpGreeting, AddressesSurvivePackingAndNothingElseIsOne) {
  TcpAddress address{4711, makeNonce(), {InetAddress(InetAddress::V4{192, 0, 2, 2}).v6(), InetAddress::V6{1}}};
  const std::vector<std::byte> packed = packTcpAddress(address);
  const auto unpacked = unpackTcpAddress(packed);
  ASSERT_TRUE(unpacked.has_value());
  EXPECT_EQ(unpacked->port, address.port);
  EXPECT_EQ(unpacked->publicKey, address.publicKey);
  EXPECT_EQ(unpacked->hosts, address.hosts);
  for (std::size_t bytes = 0; bytes < packed.size(); ++bytes) {
    const bool isWhole = bytes >= 34 && (bytes - 34) % 16 == 0;
    EXPECT_EQ(unpackTcpAddress({packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(bytes)}).has_value(),
              isWhole);
  }
}

}  // namespace
}  // namespace tacc::test
