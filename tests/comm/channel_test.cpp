// Messages over an encrypted channel, with somebody who changes what goes over it.
#include "comm/bootstrap/channel.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "comm/bootstrap/handshake.hpp"

namespace tacc {
namespace {

std::pair<FileDescriptor, FileDescriptor> makePair() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

struct Conversation {
  Secret secret = makeNonce();
  Challenge challenge{makeNonce()};
  Introduction host, joiner;
  Hello hello;
  Welcome welcome;
  Conversation(bool hostEncrypts, bool joinerEncrypts)
      : host(introduceSelf(2, 0, hostEncrypts)), joiner(introduceSelf(2, 1, joinerEncrypts)) {
    hello = answerChallenge(secret, challenge, joiner);
    welcome = answerHello(secret, challenge, hello, host);
  }
};

/// Brings what is queued to the other end.
std::vector<Message> exchange(Channel& from, Channel& to, bool& isOpen) {
  std::vector<Message> messages;
  isOpen = true;
  do {
    EXPECT_TRUE(from.flush());
    isOpen = to.receive();
    while (auto message = to.take()) messages.push_back(std::move(*message));
  } while (from.hasOutput() && isOpen);
  return messages;
}

Payload drawn(std::size_t bytes, std::mt19937& random) {
  std::vector<std::byte> result(bytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random());
  return makePayload(std::move(result));
}

TEST(SealedChannel, MessagesAndDescriptorsComeThroughBothWays) {
  std::mt19937 random(7);
  const Conversation talk(true, true);
  auto [left, right] = makePair();
  Channel host(std::move(left)), joiner(std::move(right));
  trustJoiner(host, talk.secret, talk.challenge, talk.hello, talk.host);
  trustHost(joiner, talk.secret, talk.challenge, talk.hello, talk.welcome);
  const FileDescriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<int> many(300, file.get());
  for (int turn = 0; turn < 30; ++turn) {
    Channel& from = turn % 2 == 0 ? host : joiner;
    Channel& to = turn % 2 == 0 ? joiner : host;
    std::vector<Payload> sent;
    for (const std::size_t bytes : {random() % 100, random() % 200'000, std::size_t{0}}) {
      sent.push_back(drawn(bytes, random));
      from.queue(MessageKind::gather, sent.back(), turn % 5 == 0 ? std::span(many) : std::span<const int>());
    }
    bool isOpen = false;
    const std::vector<Message> got = exchange(from, to, isOpen);
    ASSERT_TRUE(isOpen);
    ASSERT_EQ(got.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(got[i].payload, *sent[i]);
      EXPECT_EQ(got[i].descriptors.size(), turn % 5 == 0 ? many.size() : 0);
    }
  }
}

TEST(SealedChannel, OnlyWhereBothEndsWantIt) {
  for (const int wants : {0, 1, 2, 3}) {
    const Conversation talk((wants & 1) != 0, (wants & 2) != 0);
    auto [left, right] = makePair();
    Channel host(std::move(left));
    trustJoiner(host, talk.secret, talk.challenge, talk.hello, talk.host);
    const std::string text = "nobody else is to read this";
    const auto bytes = std::as_bytes(std::span(text));
    host.queue(MessageKind::gather, makePayload({bytes.begin(), bytes.end()}));
    ASSERT_TRUE(host.flush());
    std::string wire(4096, 0);
    wire.resize(static_cast<std::size_t>(::recv(right.get(), wire.data(), wire.size(), 0)));
    EXPECT_EQ(wire.find(text) == std::string::npos, wants == 3);
  }
}

TEST(SealedChannel, WhatWasChangedIsNoMessageAndSaysSo) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int turn = 0; turn < 500; ++turn) {
    const Conversation talk(true, true);
    auto [left, tap] = makePair();
    auto [source, right] = makePair();
    Channel host(std::move(left)), joiner(std::move(right));
    trustJoiner(host, talk.secret, talk.challenge, talk.hello, talk.host);
    trustHost(joiner, talk.secret, talk.challenge, talk.hello, talk.welcome);
    std::vector<Payload> sent;
    for (int i = 0; i < 3; ++i) {
      sent.push_back(drawn(random() % 300, random));
      host.queue(MessageKind::gather, sent.back());
    }
    ASSERT_TRUE(host.flush());
    std::vector<std::byte> wire(4096);
    wire.resize(static_cast<std::size_t>(::recv(tap.get(), wire.data(), wire.size(), 0)));
    const std::size_t place = random() % wire.size();
    if (turn % 3 == 0) wire[place] ^= static_cast<std::byte>(1u << random() % 8);
    if (turn % 3 == 1) wire.erase(wire.begin() + static_cast<std::ptrdiff_t>(place));
    if (turn % 3 == 2) {
      const std::vector<std::byte> again = wire;  // all once more
      wire.insert(wire.end(), again.begin(), again.end());
    }
    ASSERT_EQ(::send(source.get(), wire.data(), wire.size(), 0), static_cast<ssize_t>(wire.size()));
    const bool isOpen = joiner.receive();
    std::vector<Message> got;
    while (auto message = joiner.take()) got.push_back(std::move(*message));
    ASSERT_LE(got.size(), turn % 3 == 2 ? 3u : 2u);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].payload, *sent[i]);
    if (!isOpen) {
      EXPECT_NE(joiner.whyClosed().find("changed, repeated or left out"), std::string::npos);
    }
    EXPECT_TRUE(!isOpen || turn % 3 != 2);
  }
}

TEST(SealedChannel, AMessageThatIsDroppedUnsentLeavesNoGap) {
  const Conversation talk(true, true);
  auto [left, right] = makePair();
  const int room = 4096;
  ::setsockopt(left.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  Channel host(std::move(left)), joiner(std::move(right));
  trustJoiner(host, talk.secret, talk.challenge, talk.hello, talk.host);
  trustHost(joiner, talk.secret, talk.challenge, talk.hello, talk.welcome);
  const Payload large = makePayload(std::vector<std::byte>(60'000));
  int queued = 0;
  do {
    host.queue(MessageKind::gather, large);
    ++queued;
    ASSERT_TRUE(host.flush());
  } while (!host.hasOutput());
  host.queue(MessageKind::gather, large);
  host.dropUnsent();
  host.queue(MessageKind::failure, makePayload({}));
  bool isOpen = false;
  const std::vector<Message> got = exchange(host, joiner, isOpen);
  EXPECT_TRUE(isOpen) << joiner.whyClosed();
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got.back().kind, MessageKind::failure);
  EXPECT_LE(got.size(), static_cast<std::size_t>(queued) + 1);
}

}  // namespace
}  // namespace tacc
