// Encrypted records: what was sealed opens at the other end, in its place and once, and nothing else does.
#include "transports/tcp/sealed_records.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tacc::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes drawn(std::size_t count, std::mt19937& random) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

Bytes sealed(SealedOutput& out, const Bytes& text) {
  std::ranges::copy(text, out.compose(text.size()).begin());
  out.seal();
  const Bytes record(out.pending().begin(), out.pending().end());
  out.advance(record.size());
  return record;
}

/// What comes out of the other end, fed in pieces of up to `most` bytes.
Bytes opened(SealedInput& in, const Bytes& stream, std::size_t most, std::mt19937& random) {
  Bytes text;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t count = std::min<std::size_t>(1 + random() % most, stream.size() - at);
    std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(at), count, in.room(count).begin());
    in.arrived(count);
    at += count;
    while (const auto one = in.next()) text.insert(text.end(), one->begin(), one->end());
  }
  return text;
}

class SealedRecords : public testing::Test {
 protected:
  SealedRecords() { RecordProperty("seed", static_cast<int>(seed_)); }
  const unsigned seed_ = std::random_device()();
  std::mt19937 random_{seed_};
  const Key key_ = makeNonce();
};

TEST_F(SealedRecords, TextComesThroughInPiecesOfAnySize) {
  SCOPED_TRACE(seed_);
  for (int turn = 0; turn < 50; ++turn) {
    SealedOutput out(key_);
    SealedInput in(key_);
    Bytes text, stream;
    for (int i = 0; i < 20; ++i) {
      constexpr std::size_t sizes[] = {1, 2, 24, 1000, RecordCipher::longestText};
      const Bytes part = drawn(i % 7 == 0 ? sizes[random_() % 5] : 1 + random_() % 300, random_);
      const Bytes record = sealed(out, part);
      EXPECT_EQ(record.size(), part.size() + RecordCipher::headBytes + RecordCipher::tagBytes);
      text.insert(text.end(), part.begin(), part.end());
      stream.insert(stream.end(), record.begin(), record.end());
    }
    EXPECT_EQ(opened(in, stream, turn % 2 == 0 ? 7 : 5000, random_), text);
    EXPECT_FALSE(in.isForged());
  }
}

TEST_F(SealedRecords, WhatIsChangedLostRepeatedMovedOrForeignDoesNotOpen) {
  SCOPED_TRACE(seed_);
  for (int turn = 0; turn < 2000; ++turn) {
    SealedOutput out(key_), foreign(makeNonce());
    SealedInput in(key_);
    std::vector<Bytes> records, texts;
    for (int i = 0; i < 4; ++i) {
      texts.push_back(drawn(1 + random_() % 100, random_));
      records.push_back(sealed(out, texts.back()));
    }
    const std::size_t at = random_() % records.size();
    bool isLast = false;  // nothing follows that would show it
    switch (turn % 6) {
      case 0: {
        const std::size_t bit = random_() % (records[at].size() * 8);
        records[at][bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        break;
      }
      case 1:
        isLast = at + 1 == records.size();
        records.erase(records.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 2:
        records.insert(records.begin() + static_cast<std::ptrdiff_t>(at) + 1, records[at]);
        break;
      case 3:
        std::swap(records[at], records[(at + 1) % records.size()]);
        break;
      case 4:
        records[at] = sealed(foreign, texts[at]);
        break;
      default:
        records[at].erase(records[at].begin() + static_cast<std::ptrdiff_t>(random_() % records[at].size()));
    }
    Bytes stream, text, whole;
    for (const Bytes& record : records) stream.insert(stream.end(), record.begin(), record.end());
    for (const Bytes& one : texts) whole.insert(whole.end(), one.begin(), one.end());
    text = opened(in, stream, 50, random_);
    ASSERT_LE(text.size(), whole.size());
    EXPECT_TRUE(std::ranges::equal(text, std::span(whole).first(text.size()))) << "case " << turn % 6;
    const bool mayWait = turn % 6 == 0 || turn % 6 == 5;  // for bytes of a longer record
    EXPECT_TRUE(in.isForged() || isLast || mayWait) << "case " << turn % 6;
    if (text.size() == whole.size()) {
      EXPECT_EQ(turn % 6, 2) << "only a repeated record may follow all the text";
    }
    if (in.isForged()) {
      EXPECT_TRUE(opened(in, sealed(out, texts[0]), 50, random_).empty()) << "opens again";
    }
  }
}

TEST_F(SealedRecords, ALyingLengthTakesNoMemory) {
  for (const std::uint32_t length :
       {std::uint32_t{0}, std::uint32_t{65'537}, std::uint32_t{1} << 31, ~std::uint32_t{0}})
    EXPECT_FALSE(RecordCipher::lengthOf(bytesOf(length)).has_value()) << length;
}

TEST_F(SealedRecords, ARecordThatWasTakenBackLeavesNoGap) {
  SealedOutput out(key_);
  SealedInput in(key_);
  const Bytes first = drawn(10, random_), second = drawn(20, random_);
  std::ranges::copy(first, out.compose(first.size()).begin());
  out.seal();
  out.takeBack();
  EXPECT_TRUE(out.pending().empty());
  EXPECT_EQ(opened(in, sealed(out, second), 9, random_), second);
}

}  // namespace
}  // namespace tacc::test
