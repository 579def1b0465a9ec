// Matching of what comes over TCP with what was asked for, in any order and in pieces of any size.
#include "transports/tcp/tcp_inbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <string>

#include "core/error.hpp"

namespace tacc::test {
namespace {

struct Message {
  std::uint32_t tag;
  std::vector<std::byte> sent;
  std::vector<std::byte> received;
  NetworkRequest request;
};

/// Brings up to `most` bytes of `message`, from `done` on; returns how many have come in all.
std::size_t bring(TcpInbox& inbox, const Message& message, std::size_t done, std::size_t most) {
  for (std::size_t end = done + most; done < end;) {
    const std::span<std::byte> landing = inbox.landing();
    const std::size_t bytes = std::min(landing.size(), end - done);
    if (bytes == 0) break;
    std::copy_n(message.sent.begin() + static_cast<std::ptrdiff_t>(done), bytes, landing.begin());
    inbox.landed(bytes);
    done += bytes;
  }
  return done;
}

TcpChannel channelOf(int rank) {
  TcpChannel channel;
  channel.rank = rank;
  channel.ranks = {0, 1, 2, 3, 4, 5};
  return channel;
}

void bringAll(TcpInbox& inbox, TcpChannel* channel, std::uint32_t tag, std::size_t bytes) {
  inbox.begin(channel, tag, bytes);
  while (!inbox.landing().empty()) inbox.landed(inbox.landing().size());
}

TEST(TcpInbox, EveryOrderOfMessagesAndReceives) {
  constexpr std::size_t sizes[] = {0, 1, 5, 64, 1000, 65'536, 65'537, 300'000};
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::vector<Message> messages(1 + random() % 6);
    for (std::size_t m = 0; m < messages.size(); ++m) {
      messages[m].tag = static_cast<std::uint32_t>(m * 7);
      messages[m].sent.resize(sizes[random() % (seed % 20 == 0 ? std::size(sizes) : 5)]);
      for (std::byte& byte : messages[m].sent) byte = static_cast<std::byte>(random());
      messages[m].received.assign(messages[m].sent.size() + 1, std::byte{0xEE});
    }
    std::vector<std::size_t> asked(messages.size());
    std::iota(asked.begin(), asked.end(), 0u);
    std::ranges::shuffle(asked, random);
    TcpInbox inbox(1);
    TcpChannel channel = channelOf(0);
    std::size_t sending = 0, done = 0, posted = 0;
    bool isBegun = false;
    while (sending < messages.size() || posted < messages.size()) {
      if (posted < messages.size() && (random() % 3 == 0 || sending == messages.size())) {
        Message& message = messages[asked[posted++]];
        inbox.post(channel, message.tag, message.received.data(), message.sent.size(), message.request);
      } else if (sending < messages.size()) {
        const Message& message = messages[sending];
        if (!isBegun) inbox.begin(&channel, message.tag, message.sent.size());
        isBegun = true;
        done = bring(inbox, message, done, 1 + random() % (message.sent.size() > 1000 ? 50'000 : 400));
        if (done < message.sent.size()) continue;
        EXPECT_TRUE(inbox.landing().empty());
        ++sending;
        done = 0;
        isBegun = false;
      }
    }
    EXPECT_FALSE(inbox.isAwaited());
    for (const Message& message : messages) {
      ASSERT_TRUE(message.request.done) << "seed " << seed << " tag " << message.tag;
      EXPECT_EQ(message.request.bytes, message.sent.size());
      EXPECT_TRUE(std::ranges::equal(message.sent, std::span(message.received).first(message.sent.size())));
      EXPECT_EQ(message.received.back(), std::byte{0xEE});
    }
  }
}

TEST(TcpInbox, KeepsABoundedPartUnlessSomebodyWaits) {
  TcpInbox inbox(1);
  TcpChannel channel = channelOf(0);
  constexpr std::size_t bytes = std::size_t{1} << 20;
  std::vector<std::byte> data(bytes);
  std::uint32_t tag = 0;
  for (; inbox.hasRoom(); ++tag) {
    ASSERT_LT(tag, 100u) << "no bound";
    bringAll(inbox, &channel, tag, bytes);
  }
  NetworkRequest behind;
  inbox.post(channel, tag + 1, data.data(), data.size(), behind);
  EXPECT_TRUE(inbox.hasRoom()) << "what is waited for may come behind what nobody expects";
  bringAll(inbox, &channel, tag + 1, bytes);
  EXPECT_TRUE(behind.done);
  EXPECT_FALSE(inbox.hasRoom());
  NetworkRequest first;
  inbox.post(channel, 0, data.data(), data.size(), first);
  EXPECT_TRUE(first.done);
  EXPECT_TRUE(inbox.hasRoom());
}

TEST(TcpInbox, ALongerMessageIsAnErrorOfItsChannelAlone) {
  const std::string expected = "rank 3 expected at most 10 bytes from rank 5, which sent 11 (message 1)";
  std::vector<std::byte> data(10), others(20);
  TcpInbox inbox(5);
  TcpChannel late = channelOf(3), early = channelOf(3), other = channelOf(3);
  NetworkRequest request, otherRequest;
  inbox.post(early, 1, data.data(), data.size(), request);
  bringAll(inbox, &early, 1, 11);
  ASSERT_TRUE(early.error);
  EXPECT_EQ(early.error->result(), taccInvalidUsage);
  EXPECT_EQ(early.error->what(), expected);
  EXPECT_FALSE(request.done);
  bringAll(inbox, &late, 1, 11);
  EXPECT_FALSE(late.error);
  try {
    inbox.post(late, 1, data.data(), data.size(), request);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), expected);
  }
  inbox.post(other, 1, others.data(), others.size(), otherRequest);
  bringAll(inbox, &other, 1, 20);
  EXPECT_TRUE(otherRequest.done);
  EXPECT_FALSE(other.error);
}

TEST(TcpInbox, TinyMessagesAreBoundedToo) {
  TcpInbox inbox(1);
  TcpChannel channel = channelOf(0);
  std::uint32_t tag = 0;
  for (; inbox.hasRoom(); ++tag) {
    ASSERT_LE(tag, TcpInbox::keptLimit / TcpInbox::keptOverhead) << "no bound";
    bringAll(inbox, &channel, tag, 0);
  }
  EXPECT_LE(inbox.memory(), 2 * TcpInbox::keptLimit);
}

TEST(TcpInbox, AChannelThatIsClosedTakesAndTouchesNothing) {
  for (const bool isPosted : {true, false}) {
    TcpInbox inbox(1);
    TcpChannel closed = channelOf(0), other = channelOf(0);
    std::vector<std::byte> data(1000, std::byte{7}), rest(5);
    NetworkRequest request, later;
    if (isPosted) inbox.post(closed, 1, data.data(), data.size(), request);
    inbox.begin(&closed, 1, 1000);
    std::ranges::fill(inbox.landing().first(400), std::byte{1});
    inbox.landed(400);
    EXPECT_FALSE(inbox.close(closed));
    std::size_t dropped = 0;
    while (!inbox.landing().empty()) {
      std::ranges::fill(inbox.landing(), std::byte{2});
      dropped += inbox.landing().size();
      inbox.landed(inbox.landing().size());
    }
    EXPECT_EQ(dropped, 600U);
    EXPECT_EQ(std::ranges::count(data, std::byte{2}), 0);
    EXPECT_EQ(request.done, !isPosted);
    EXPECT_FALSE(inbox.isAwaited());
    EXPECT_EQ(inbox.memory(), 0U);
    bringAll(inbox, nullptr, 1, 300);  // for a channel that is not open any more
    inbox.post(other, 1, rest.data(), rest.size(), later);
    EXPECT_FALSE(later.done);
    bringAll(inbox, &other, 1, 5);
    EXPECT_TRUE(later.done);
  }
}

/// A sender that runs ahead in one channel is told to wait there, and the other channel goes on.
TEST(TcpInbox, ChannelsArePausedEachForItself) {
  TcpInbox inbox(1);
  inbox.share();
  TcpChannel ahead = channelOf(0), other = channelOf(0);
  ahead.number = 4;
  other.number = 9;
  constexpr std::size_t bytes = std::size_t{1} << 20;
  std::vector<std::byte> data(bytes);
  std::uint32_t tag = 0;
  std::optional<TcpPause> pause;
  for (; !pause; ++tag) {
    ASSERT_LT(tag, 100U) << "no bound";
    bringAll(inbox, &ahead, tag, bytes);
    pause = inbox.takePause();
  }
  EXPECT_EQ(pause->channel, 4U);
  EXPECT_TRUE(pause->isOn);
  EXPECT_TRUE(inbox.hasRoom()) << "for the other channel";
  bringAll(inbox, &other, 0, bytes);
  EXPECT_FALSE(inbox.takePause());
  NetworkRequest request;
  std::uint32_t taken = 0;
  for (; !pause || pause->isOn; ++taken) {
    ASSERT_LT(taken, tag);
    inbox.post(ahead, taken, data.data(), data.size(), request);
    EXPECT_TRUE(request.done);
    pause = inbox.takePause();
  }
  EXPECT_EQ(pause->channel, 4U);
  EXPECT_GE(taken, tag / 2) << "told with every message";
  // Paused again, and what is waited for lies behind.
  for (pause.reset(); !pause; ++tag) {
    bringAll(inbox, &ahead, tag, bytes);
    pause = inbox.takePause();
  }
  EXPECT_TRUE(pause->isOn);
  inbox.post(ahead, tag, data.data(), data.size(), request);
  pause = inbox.takePause();
  ASSERT_TRUE(pause);
  EXPECT_FALSE(pause->isOn);
}

TEST(TcpInbox, OneThatWaitsForAClosedChannelIsToGoOn) {
  TcpInbox inbox(1);
  inbox.share();
  TcpChannel ahead = channelOf(0), other = channelOf(0);
  constexpr std::size_t bytes = std::size_t{1} << 20;
  bringAll(inbox, &other, 0, bytes);
  std::optional<TcpPause> pause;
  for (std::uint32_t tag = 0; !pause; ++tag) {
    ASSERT_LT(tag, 100U) << "no bound";
    bringAll(inbox, &ahead, tag, bytes);
    pause = inbox.takePause();
  }
  EXPECT_FALSE(inbox.close(other));
  EXPECT_TRUE(inbox.close(ahead));
  EXPECT_FALSE(inbox.close(ahead)) << "told once";
  EXPECT_FALSE(inbox.takePause());
}

TEST(TcpInbox, AMessageTakesMemoryAsItArrives) {
  constexpr std::size_t claimed = std::size_t{1} << 40;  // more than any machine has
  TcpInbox inbox(1);
  TcpChannel channel = channelOf(0);
  inbox.begin(&channel, 1, claimed);
  std::size_t arrived = 0;
  while (arrived < std::size_t{4} << 20) {
    ASSERT_FALSE(inbox.landing().empty());
    ASSERT_LE(inbox.landing().size(), std::max(arrived, std::size_t{64} << 10));
    const std::size_t some = std::min<std::size_t>(inbox.landing().size(), 10'000);
    inbox.landed(some);
    arrived += some;
  }
  EXPECT_FALSE(inbox.hasRoom());
  std::byte small[16];
  NetworkRequest request;
  try {
    inbox.post(channel, 1, small, sizeof small, request);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 0 expected at most 16 bytes from rank 1, which sent 1099511627776 (message 1)");
  }
}

TEST(TcpInbox, AnImpossibleLengthIsAnError) {
  TcpInbox inbox(1);
  TcpChannel channel = channelOf(0);
  EXPECT_THROW(inbox.begin(&channel, 1, ~std::size_t{0}), Error);
}

}  // namespace
}  // namespace tacc::test
