// The bootstrap with TACC_ENCRYPTION=on: on one host, over TCP, and in a tree; and where not all ranks have it;
// and which transport is chosen where only one that encrypts, or that keeps to the allowed ports, may be.
#include <cstdlib>
#include <string>
#include <vector>

#include "bootstrap_team.hpp"
#include "comm/bootstrap/bootstrap.hpp"
#include "comm/cluster/transport_choice.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

using test::ChildProcess;
using test::gatherNumbers;
using test::patience;

/// For a rank on that host; rank 0 is on host 0.
taccUniqueId idFor(const taccUniqueId& id, int host) {
  UniqueIdContents contents = openUniqueId(id);
  contents.host ^= static_cast<std::uint64_t>(host);
  return sealUniqueId(contents);
}

bool joinAndTalk(const taccUniqueId& id, int ranks, int rank, const BootstrapOptions& options, bool isOneHost) {
  Bootstrap bootstrap(id, ranks, rank, patience, {}, options);
  for (const int factor : {1, 7})
    if (!gatherNumbers(bootstrap, ranks, rank, factor)) return false;
  const std::vector<std::byte> large(300'000, std::byte{static_cast<unsigned char>(rank)});
  const auto all = bootstrap.allGatherStrings(large);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r] != std::vector<std::byte>(large.size(), std::byte{static_cast<unsigned char>(r)})) return false;
  if (bootstrap.allUnix() != isOneHost) return false;
  return !isOneHost || bootstrap.broadcastDescriptor(rank == 0 ? 2 : -1).valid();
}

/// Ranks in turn on `hosts` hosts.
void expectTeam(int ranks, int hosts, int width) {
  const taccUniqueId id = makeUniqueId();
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.emplace_back([=] {
      const int host = rank % hosts;
      const BootstrapOptions options{.treeWidth = width, .host = static_cast<std::uint64_t>(host), .encrypts = true};
      return joinAndTalk(idFor(id, host), ranks, rank, options, hosts == 1);
    });
  }
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0) << ranks << " ranks, " << hosts << " hosts";
}

TEST(BootstrapEncryption, RanksOfOneHostMeet) { expectTeam(4, 1, 32); }
TEST(BootstrapEncryption, RanksOfSeveralHostsMeet) { expectTeam(5, 3, 32); }
TEST(BootstrapEncryption, RanksMeetInATree) { expectTeam(9, 4, 1); }

TEST(BootstrapEncryption, ARankWithoutItIsAnErrorOnAll) {
  for (const bool hasHost : {true, false}) {
    const taccUniqueId id = makeUniqueId();
    std::vector<ChildProcess> children;
    for (int rank = 0; rank < 3; ++rank) {
      children.emplace_back([=] {
        try {
          const BootstrapOptions options{.encrypts = (rank == 1) != hasHost};
          Bootstrap bootstrap(idFor(id, rank), 3, rank, patience, {}, options);
          bootstrap.allGather({});
        } catch (const Error& error) {
          const std::string text = error.what();
          const bool isRight = text.find("has TACC_ENCRYPTION") != std::string::npos &&
                               text.find("set it alike on all") != std::string::npos;
          if (!isRight) std::fprintf(stderr, "rank %d got: %s\n", rank, text.c_str());
          return isRight;
        }
        return false;
      });
    }
    for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
  }
}

TEST(BootstrapEncryption, OnlyTheTransportThatEncryptsIsChosen) {
  Bootstrap alone(makeUniqueId(), 1, 0, patience);
  const std::vector<RankIdentity> who{introduceSelf("", true)};
  NetworkOptions options{.rank = 0, .ranks = 1, .interfaces = "lo", .encrypts = true};
  for (const char* forced : {"", "tcp"}) EXPECT_EQ(chooseTransport(alone, who, options, nullptr, forced).name, "tcp");
  for (const char* forced : {"ucx", "ofi", "mpi"}) {
    try {
      (void)chooseTransport(alone, who, options, nullptr, forced);
      ADD_FAILURE() << forced;
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccInvalidUsage);
      EXPECT_EQ(std::string(error.what()),
                "TACC_ENCRYPTION=on encrypts what tacc's own TCP carries, and TACC_TRANSPORT=" + std::string(forced) +
                    " asks for another transport: leave TACC_TRANSPORT out or set it to tcp, or set "
                    "TACC_ENCRYPTION=off");
    }
  }
}

/// The libraries of other transports would choose ports that a firewall need not let through.
TEST(BootstrapPorts, NoTransportIsChosenThatListensBesideThePortsThatAreAllowed) {
  if (hasFabricDevice()) GTEST_SKIP() << "a card's library may serve, which needs no port";
  Bootstrap alone(makeUniqueId(), 1, 0, patience);
  const std::vector<RankIdentity> who{introduceSelf("", true)};
  const NetworkOptions options{.rank = 0, .ranks = 1, .interfaces = "lo"};
  const FileDescriptor taken = bindTcp(0);
  const std::string range = std::to_string(portOf(taken.get())) + "-" + std::to_string(portOf(taken.get()));
  ASSERT_EQ(setenv("TACC_PORT_RANGE", range.c_str(), 1), 0);
  std::string text = "a transport is chosen";
  try {
    (void)chooseTransport(alone, who, options, nullptr, "", true);
  } catch (const Error& error) {
    text = error.what();
  }
  ASSERT_EQ(unsetenv("TACC_PORT_RANGE"), 0);
  EXPECT_NE(text.find("no port of TACC_PORT_RANGE=" + range + " is free"), std::string::npos) << text;
}

}  // namespace
}  // namespace tacc
