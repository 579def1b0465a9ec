// Which addresses other hosts are told.
#include "transports/interfaces.hpp"

#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "comm/bootstrap/unique_id.hpp"
#include "core/error.hpp"
#include "support/child_process.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const InetAddress loopback(InetAddress::V4{127, 0, 0, 1});
const InetAddress card(InetAddress::V4{192, 0, 2, 7});
const InetAddress second(InetAddress::V4{198, 51, 100, 7});
const InetAddress bridge(InetAddress::V4{172, 17, 0, 1});
const InetAddress unplugged(InetAddress::V4{203, 0, 113, 7});
const InetAddress card6(InetAddress::V6{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
const InetAddress link6(InetAddress::V6{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});

const std::vector<InterfaceAddress> all = {{"lo", loopback}, {"docker0", bridge}, {"eth0", card},
                                           {"eth0", card6},  {"eth0", link6},     {"eth2", unplugged, false},
                                           {"ib0", second}};

std::vector<std::string> chosen(std::string_view names, const std::vector<InterfaceAddress>& from = all) {
  std::vector<std::string> text;
  for (const InterfaceAddress& one : chooseAddresses(from, names)) text.push_back(one.address.host());
  return text;
}

TEST(Interfaces, CardsComeFirstAndLoopbackOnlyAlone) {
  EXPECT_THAT(chosen(""), ElementsAre("192.0.2.7", "fd00::2", "198.51.100.7", "172.17.0.1", "203.0.113.7"));
  EXPECT_THAT(chosen("", {{"lo", loopback}}), ElementsAre("127.0.0.1"));
  EXPECT_THAT(chosen("", {{"lo", loopback}, {"eth0", link6}}), ElementsAre("127.0.0.1"));
  EXPECT_THAT(chosen("", {}), ElementsAre());
}

TEST(Interfaces, NamesRestrictAndOrder) {
  EXPECT_THAT(chosen("ib0"), ElementsAre("198.51.100.7"));
  EXPECT_THAT(chosen("ib0,lo,eth0"), ElementsAre("198.51.100.7", "127.0.0.1", "192.0.2.7", "fd00::2"));
}

TEST(Interfaces, AnUnknownNameListsWhatThereIs) {
  try {
    chosen("eth0,eth9");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("\"eth9\""));
    EXPECT_THAT(error.what(), HasSubstr("lo 127.0.0.1, docker0 172.17.0.1, eth0 192.0.2.7, eth0 fd00::2"));
  }
}

// Other ranks' hosts may have what this one lacks.
TEST(Interfaces, NamesThatAHostLacksAreLeftOutUnlessItLacksAll) {
  const auto hosts = [](std::string_view names) {
    std::vector<std::string> text;
    for (const InterfaceAddress& one : choosePresent(all, names)) text.push_back(one.address.host());
    return text;
  };
  EXPECT_THAT(hosts("eth9,ib0,ib9,lo"), ElementsAre("198.51.100.7", "127.0.0.1"));
  EXPECT_EQ(hosts(""), chosen(""));
  try {
    hosts("eth9,ib9");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"eth9\""));
  }
}

TEST(Interfaces, AnAddressLeadsToItsInterface) {
  EXPECT_EQ(interfaceOf(all, InetAddress(InetAddress::V4{198, 51, 100, 7}, 4711)), "ib0");
  EXPECT_EQ(interfaceOf(all, InetAddress(InetAddress::V4{198, 51, 100, 8})), "");
}

TEST(Interfaces, ThisHostHasLoopback) { EXPECT_THAT(describeAddresses(interfaceAddresses()), HasSubstr("127.0.0.1")); }

TEST(InetAddress, IsWrittenAsPeopleDo) {
  EXPECT_EQ(InetAddress(InetAddress::V4{192, 0, 2, 7}, 80).text(), "192.0.2.7:80");
  EXPECT_EQ(InetAddress(card6.v6(), 80).text(), "[fd00::2]:80");
  EXPECT_TRUE(loopback.isLoopback() && !card.isLoopback() && link6.isLinkLocal() && !card6.isLinkLocal());
}

TEST(InetAddress, SurvivesTheSocketCalls) {
  for (const InetAddress& address : {card, card6}) {
    sockaddr_storage storage;
    address.fill(storage);
    EXPECT_EQ(InetAddress::of(reinterpret_cast<const sockaddr*>(&storage)), address);
  }
}

TEST(UniqueIdAddresses, NamesTheInterfacesThatTheUserWants) {
  ASSERT_EQ(setenv("TACC_SOCKET_IFNAME", "lo", 1), 0);
  const std::vector<InetAddress> addresses = addressesIn(openUniqueId(makeUniqueId()));
  ASSERT_FALSE(addresses.empty());
  EXPECT_EQ(addresses[0].host(), "127.0.0.1");
  ASSERT_EQ(setenv("TACC_SOCKET_IFNAME", "no_such_card", 1), 0);
  EXPECT_THROW(makeUniqueId(), Error);
  ASSERT_EQ(unsetenv("TACC_SOCKET_IFNAME"), 0);
}

TEST(UniqueIdAddresses, HoldsFourOfVersion4AndOneOfVersion6) {
  UniqueIdContents contents{};
  contents.port = 80;
  setAddresses(contents, {card6, card, second, bridge, unplugged, loopback, link6});
  std::vector<std::string> text;
  for (const InetAddress& address : addressesIn(contents)) text.push_back(address.text());
  EXPECT_THAT(text, ElementsAre("192.0.2.7:80", "198.51.100.7:80", "172.17.0.1:80", "203.0.113.7:80", "[fd00::2]:80"));
  contents.port = 0;
  EXPECT_TRUE(addressesIn(contents).empty());
}

TEST(ReservedPorts, BelongToOneIdAndDoNotPileUp) {
  const std::uint16_t first = reservePort();
  EXPECT_NE(first, 0);
  EXPECT_NE(first, reservePort());
  EXPECT_TRUE(bindTcp(first).valid());  // as rank 0 does
  for (int i = 0; i < 100; ++i) (void)reservePort();
  const int before = test::countOpenDescriptors();
  for (int i = 0; i < 100; ++i) (void)reservePort();
  EXPECT_EQ(test::countOpenDescriptors(), before);
}

/// As in a daemon that has closed all descriptors and accepts at the port.
TEST(ReservedPorts, AreGivenUpWithoutAConnectionThatHasTheirNumber) {
  const std::uint16_t port = reservePort();
  int number = 0;
  while (number < 4096 && portOf(number) != port) ++number;
  ASSERT_LT(number, 4096);
  const FileDescriptor listener = bindTcp(port);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const FileDescriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const int accepted = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
  ASSERT_EQ(::dup2(accepted, number), number);
  ::close(accepted);
  releasePort(port);
  EXPECT_EQ(portOf(number), port);
  ::close(number);
}

/// From now on sockets of netlink are refused with `code`, as sandboxes do.
bool refuseNetlink(int code) {
  std::array<sock_filter, 6> steps{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(steps.size()), steps.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Interfaces, AreFoundWithoutNetlinkAsFarAsIpv4Goes) {
  std::vector<std::string> expected;
  for (const InterfaceAddress& one : interfaceAddresses())
    if (one.address.isV4()) expected.push_back(one.interface + " " + one.address.host());
  std::ranges::sort(expected);
  for (const int code : {EPERM, EACCES, ENOSYS, EAFNOSUPPORT}) {
    if (test::ChildProcess probe([&] { return refuseNetlink(code); }); probe.wait() != 0)
      GTEST_SKIP() << "this system lets nobody refuse system calls";
    test::ChildProcess child([&] {
      if (!refuseNetlink(code)) return false;
      std::vector<std::string> found;
      for (const InterfaceAddress& one : interfaceAddresses())
        found.push_back(one.interface + " " + one.address.host());
      std::ranges::sort(found);
      return found == expected;
    });
    EXPECT_EQ(child.wait(), 0) << "refused with " << code;
  }
}

}  // namespace
}  // namespace tacc
