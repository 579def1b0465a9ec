// What rank 0 leaves in a launcher's store: a process manager that speaks PMI-1, in a thread, and one that errs.
#include "comm/launch/launch_store.hpp"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "comm/launch/launch_card.hpp"
#include "core/error.hpp"
#include "transports/file_descriptor.hpp"

namespace tacc {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

StoreDeadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// Answers every line with what `answer` makes of it; "" says nothing.
class Manager {
 public:
  explicit Manager(std::function<std::string(const std::string&)> answer) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    rank_ = FileDescriptor(ends[0]);
    own_ = FileDescriptor(ends[1]);
    thread_ = std::thread([this, answer = std::move(answer)] {
      std::string line;
      for (char byte = 0; ::recv(own_.get(), &byte, 1, 0) == 1;) {
        if (byte != '\n') {
          line += byte;
          continue;
        }
        heard_ += line + "|";
        if (const std::string reply = answer(line); !reply.empty()) say(reply);
        line.clear();
      }
    });
  }
  ~Manager() { end(); }

  /// Hears what was said, and no more.
  void end() {
    ::shutdown(rank_.get(), SHUT_WR);  // answers that are under way still arrive
    if (thread_.joinable()) thread_.join();
  }

  void say(const std::string& line) {
    // In two parts, as a network may deliver it.
    const std::string text = line + "\n";
    EXPECT_EQ(::send(own_.get(), text.data(), text.size() / 2, 0), static_cast<ssize_t>(text.size() / 2));
    EXPECT_GT(::send(own_.get(), text.data() + text.size() / 2, text.size() - text.size() / 2, 0), 0);
  }
  int socket() const { return rank_.get(); }
  const std::string& heard() const { return heard_; }

 private:
  FileDescriptor rank_, own_;
  std::string heard_;
  std::thread thread_;
};

std::string usual(const std::string& line) {
  static std::string kept;
  if (line.starts_with("cmd=init ")) return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
  if (line == "cmd=get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1";
  if (line.starts_with("cmd=put kvsname=kvs_1 key=tacc-meeting value=")) {
    kept = line.substr(line.rfind('=') + 1);
    return "cmd=put_result rc=0 msg=success";
  }
  if (line == "cmd=barrier_in") return "cmd=barrier_out";
  if (line == "cmd=get kvsname=kvs_1 key=tacc-meeting") return "cmd=get_result rc=0 msg=success value=" + kept;
  return "cmd=unknown rc=-1";
}

Launch rank(int number) {
  Launch launch;
  launch.launcher = "Hydra";
  launch.rank = number;
  launch.ranks = 2;
  launch.store = Store::pmi;
  return launch;
}

std::string refusal(const std::function<std::string(const std::string&)>& answer, taccResult_t result) {
  Manager manager(answer);
  try {
    (void)shareByPmi(manager.socket(), rank(0), "word", in(200ms));
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), result);
    return error.what();
  }
  return "accepted";
}

TEST(PmiStore, AllRanksGetWhatTheFirstGives) {
  Manager first(usual), second(usual);
  EXPECT_EQ(shareByPmi(first.socket(), rank(0), "a;b:1;c", in(10s)), "a;b:1;c");
  EXPECT_EQ(shareByPmi(second.socket(), rank(1), "", in(10s)), "a;b:1;c");
  EXPECT_THAT(second.heard(), testing::Not(HasSubstr("put")));
}

/// Without it Hydra takes the end of the process for a failure, and kills the others.
TEST(PmiStore, AProcessTakesItsLeaveWhenItExits) {
  Manager manager(
      [](const std::string& line) { return line == "cmd=finalize" ? std::string("cmd=finalize_ack") : usual(line); });
  // What a child of the rank does is no farewell, nor does the rank say it before it exits.
  const int socket = ::dup(manager.socket());  // which the children keep
  const pid_t process = ::fork();
  if (process == 0) {
    (void)shareByPmi(socket, rank(0), "word", in(10s));
    if (const pid_t child = ::fork(); child == 0)
      std::exit(0);
    else
      ::waitpid(child, nullptr, 0);
    const std::string more = "cmd=get_my_kvsname\n";
    if (::send(socket, more.data(), more.size(), 0) != static_cast<ssize_t>(more.size())) ::_exit(1);
    char answer[64];
    if (::recv(socket, answer, sizeof answer, 0) <= 0) ::_exit(2);
    std::exit(0);
  }
  ::close(socket);
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
  manager.end();
  EXPECT_THAT(manager.heard(),
              testing::EndsWith("cmd=get kvsname=kvs_1 key=tacc-meeting|cmd=get_my_kvsname|cmd=finalize|"));
}

TEST(PmiStore, AManagerThatHasDiedIsAnErrorAndNoSignal) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const FileDescriptor own(ends[0]);
  ::close(ends[1]);
  EXPECT_THROW(shareByPmi(own.get(), rank(1), "", in(10s)), Error);
}

TEST(PmiStore, AManagerThatErrsIsQuoted) {
  EXPECT_THAT(refusal([](const std::string&) { return "cmd=nonsense"; }, taccSystemError),
              testing::AllOf(HasSubstr("cmd=nonsense"), HasSubstr("TACC_RENDEZVOUS")));
  const auto refusesPut = [](const std::string& line) {
    return line.starts_with("cmd=put") ? "cmd=put_result rc=-1 msg=no" : usual(line);
  };
  EXPECT_THAT(refusal(refusesPut, taccSystemError), HasSubstr("keep where rank 0 is met"));
  EXPECT_THAT(refusal([](const std::string&) { return std::string(5000, 'x'); }, taccSystemError), HasSubstr("ended"));
}

TEST(PmiStore, WhoGaveUpInTheBarrierGoesOnThere) {
  std::atomic<bool> isLate = true;
  Manager manager([&](const std::string& line) { return line == "cmd=barrier_in" && isLate ? "" : usual(line); });
  EXPECT_THROW(shareByPmi(manager.socket(), rank(0), "again", in(50ms)), Error);
  isLate = false;
  manager.say("cmd=barrier_out");
  EXPECT_EQ(shareByPmi(manager.socket(), rank(0), "another", in(10s)), "again");
}

TEST(LaunchCard, IsReadAsItWasWritten) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    LaunchCard card;
    const auto port = static_cast<std::uint16_t>(1 + random() % 65535);
    for (unsigned i = 0; i < 1 + random() % 4; ++i)
      card.addresses.emplace_back(InetAddress::V4{10, static_cast<unsigned char>(random()), 0, 1}, port);
    if (random() % 2 == 0) card.addresses.emplace_back(InetAddress::V6{0xfd, 1, 2}, port);
    for (int i = 0; i < 64; ++i) card.secret += "0123456789abcdef"[random() % 16];
    const std::string text = card.encode();
    EXPECT_LT(text.size(), 400U);
    EXPECT_EQ(text.find_first_of(" =\n"), std::string::npos);
    const auto read = LaunchCard::decode(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->encode(), text);
    // Whatever is cut off makes it another or none, never a crash.
    EXPECT_FALSE(LaunchCard::decode(text.substr(0, random() % text.size())));
  }
  for (const char* text : {"", ";", "tacc-card-1", "tacc-card-1;10.0.0.1:1;short", "tacc-card-2;10.0.0.1:1;0"})
    EXPECT_FALSE(LaunchCard::decode(text)) << text;
}

}  // namespace
}  // namespace tacc
