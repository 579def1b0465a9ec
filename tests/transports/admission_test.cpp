// Who may stand at a rank's sockets without having proven anything: how many, for how long, and who has to go.
#include "transports/admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "transports/tcp/tcp.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

constexpr int self = 1;
constexpr std::size_t ranks = 3;
constexpr std::size_t most = ranks + Admission::strangerLimit;
constexpr InetAddress::V4 here{127, 0, 0, 1};       // where ranks are
constexpr InetAddress::V4 elsewhere{127, 0, 0, 2};  // where none is

/// Says one byte: 'p' proves it, 'x' throws, anything else is refused.
class OneByte : public Stranger {
 public:
  OneByte(FileDescriptor socket, int& proven) : socket_(std::move(socket)), proven_(proven) {}
  pollfd descriptor() const noexcept override { return {socket_.get(), POLLIN, 0}; }
  Hearing hear() override {
    char said = 0;
    const ssize_t got = ::recv(socket_.get(), &said, 1, MSG_DONTWAIT);
    if (got < 0) return {Standing::waits, ""};
    if (got == 0) return {Standing::gone, ""};
    if (said == 'x') throw std::runtime_error("no memory");
    if (said != 'p') return {Standing::refused, "it said something else"};
    ++proven_;
    return {Standing::proven, ""};
  }

 private:
  FileDescriptor socket_;
  int& proven_;
};

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() { EXPECT_EQ(::listen(listener_.get(), 512), 0); }

  static FileDescriptor tcpSocket() { return FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  void connect(const FileDescriptor& socket, InetAddress::V4 from) const {
    sockaddr_storage storage;
    socklen_t length = InetAddress(from).fill(storage);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), length), 0);
    length = InetAddress(here, portOf(listener_.get())).fill(storage);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), length), 0);
  }
  FileDescriptor visit(InetAddress::V4 from = here) const {
    FileDescriptor socket = tcpSocket();
    connect(socket, from);
    return socket;
  }
  int accept() {
    pollfd waiting{listener_.get(), POLLIN, 0};
    ::poll(&waiting, 1, 2000);
    const std::optional<int> number = admission_.accept(listener_.get(), true);
    EXPECT_TRUE(number.has_value());
    return number.value_or(-1);
  }
  static void say(const FileDescriptor& socket, char word) {
    ASSERT_EQ(::send(socket.get(), &word, 1, MSG_NOSIGNAL), 1);
  }
  static bool isOpen(const FileDescriptor& socket) {
    char byte;
    return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  /// Until what was sent has come.
  void waitForWords(int number) const {
    pollfd speaking{admission_.descriptorOf(number), POLLIN, 0};
    EXPECT_EQ(::poll(&speaking, 1, 2000), 1);
  }

  int proven_ = 0;
  FileDescriptor listener_ = bindTcp(0);
  Admission admission_{self, ranks, [this](FileDescriptor socket, const Origin&) {
                         return std::make_unique<OneByte>(std::move(socket), proven_);
                       }};
};

/// Drawn comings, words and goings: never more than there may be; who is sent away is from no rank's host while such a
/// one is there, and else the oldest; nobody is whose proof has come.
TEST_F(AdmissionTest, AtTheBoundOneFromNowhereGoesAndElseTheOldest) {
  struct Open {
    FileDescriptor socket;
    int number;
    bool isFar;
  };
  admission_.addHost(InetAddress(here).v6());
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::deque<Open> open;  // oldest first
  std::vector<FileDescriptor> proving;
  int sent = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    const unsigned kind = random() % 16;
    if (kind == 0 && !open.empty()) {  // one leaves
      const auto one = open.begin() + static_cast<std::ptrdiff_t>(random() % open.size());
      const int number = one->number;
      one->socket.reset();
      waitForWords(number);
      open.erase(one);
      admission_.hear(number);
    } else if (kind == 1 && !open.empty()) {  // one proves itself, and may be heard only when it would have to go
      const auto one = open.begin() + static_cast<std::ptrdiff_t>(random() % open.size());
      const int number = one->number;
      say(one->socket, 'p');
      waitForWords(number);
      ++sent;
      if (random() % 2 == 0) admission_.hear(number);
      proving.push_back(std::move(one->socket));
      open.erase(one);
    } else {
      const bool isFar = random() % (turn < 1500 ? 2 : 8) == 0;
      const std::size_t before = admission_.size();
      const int provenBefore = proven_;
      FileDescriptor socket = visit(isFar ? elsewhere : here);
      const int number = accept();
      ASSERT_LE(admission_.size(), most);
      if (before == most && proven_ == provenBefore) {
        auto gone = std::ranges::find_if(open, &Open::isFar);
        if (gone == open.end()) gone = open.begin();
        ASSERT_FALSE(isOpen(gone->socket)) << "turn " << turn;
        open.erase(gone);
      }
      open.push_back({std::move(socket), number, isFar});
    }
    for (const Open& one : open) ASSERT_TRUE(isOpen(one.socket)) << "turn " << turn;
  }
  for (int number = 0; number < 3000; ++number) admission_.hear(number);
  EXPECT_EQ(proven_, sent);
  EXPECT_EQ(admission_.size(), open.size());
}

TEST_F(AdmissionTest, WhatIsSaidIsJudgedAndTold) {
  const FileDescriptor good = visit(), bad = visit(), odd = visit();
  std::vector<int> numbers;
  for (int i = 0; i < 3; ++i) numbers.push_back(accept());
  say(good, 'p');
  say(bad, 'n');
  say(odd, 'x');
  for (const int number : numbers) waitForWords(number);
  EXPECT_THROW(admission_.hear(numbers[2]), std::runtime_error);  // it may come again
  EXPECT_FALSE(isOpen(odd));
  std::vector<pollfd> sockets;
  admission_.addDescriptors(sockets);
  ASSERT_EQ(::poll(sockets.data(), sockets.size(), 2000), 2);
  admission_.hear(sockets);
  EXPECT_EQ(proven_, 1);
  EXPECT_TRUE(admission_.isEmpty());
  EXPECT_THAT(admission_.describeRefusals(), HasSubstr("1 connections were refused, the last from 127.0.0.1:"));
  EXPECT_THAT(admission_.describeRefusals(), HasSubstr("it said something else"));
}

TEST_F(AdmissionTest, WhoIsSilentGoesInTimeAndWhoHasSpokenDoesNot) {
  const FileDescriptor silent = visit();
  accept();
  const FileDescriptor unread = visit();
  say(unread, 'p');
  waitForWords(accept());
  admission_.dismissSilent();
  EXPECT_EQ(admission_.size(), 2u);
  const auto due = admission_.nextDue();
  ASSERT_TRUE(due.has_value());
  EXPECT_LE(*due, Admission::Clock::now() + Admission::patience);
  std::this_thread::sleep_until(*due + std::chrono::milliseconds(100));
  const FileDescriptor late = visit();
  accept();
  admission_.dismissSilent();
  EXPECT_EQ(proven_, 1);
  EXPECT_FALSE(isOpen(silent));
  EXPECT_TRUE(isOpen(late));
  EXPECT_EQ(admission_.size(), 1u);
  EXPECT_THAT(admission_.describeRefusals(), HasSubstr("did not prove within 2 s"));
}

/// For as long as it lives, this process may open nothing.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    const rlimit limit{static_cast<rlim_t>(next), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(AdmissionTest, WithoutADescriptorOneFromNowhereMakesRoomAtOnceAndARankAfterAMoment) {
  admission_.addHost(InetAddress(here).v6());
  for (const bool isFar : {true, false}) {
    const FileDescriptor standing = visit(isFar ? elsewhere : here);
    accept();
    const FileDescriptor waiting = visit();
    const NoDescriptors none;
    const auto begin = Admission::Clock::now();
    while (!admission_.accept(listener_.get(), true)) {
      ASSERT_FALSE(isFar);
      ASSERT_LT(Admission::Clock::now() - begin, std::chrono::seconds(5));
      EXPECT_FALSE(admission_.isOpen());
      EXPECT_LE(admission_.nextDue(), Admission::Clock::now() + Admission::shortagePause);
      std::this_thread::sleep_until(admission_.reopensAt());
    }
    if (!isFar) {
      EXPECT_GT(Admission::Clock::now() - begin, Admission::yieldTime / 2);
    }
    EXPECT_TRUE(admission_.isOpen());
    EXPECT_EQ(admission_.lastShortage(), EMFILE);
    EXPECT_EQ(admission_.lastingShortage(), 0);
    EXPECT_FALSE(isOpen(standing));
    EXPECT_TRUE(isOpen(waiting));
    admission_.clear();
  }
}

TEST_F(AdmissionTest, AShortageThatLastsIsToldUntilItEnds) {
  const FileDescriptor waiting = visit();
  {
    const NoDescriptors none;
    EXPECT_FALSE(admission_.accept(listener_.get(), true));
    EXPECT_EQ(admission_.lastingShortage(), 0);
    std::this_thread::sleep_for(Admission::shortageLimit + std::chrono::milliseconds(10));
    EXPECT_FALSE(admission_.accept(listener_.get(), true));
    EXPECT_EQ(admission_.lastingShortage(), EMFILE);
  }
  EXPECT_TRUE(admission_.accept(listener_.get(), true));
  EXPECT_EQ(admission_.lastingShortage(), 0);
  EXPECT_TRUE(isOpen(waiting));
}

}  // namespace
}  // namespace tacc::test
