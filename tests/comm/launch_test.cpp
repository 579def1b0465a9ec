// What launchers say, from made-up environments.
#include <gmock/gmock.h>
#include <unistd.h>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/hosts.hpp"
#include "comm/launch/launch_environment.hpp"
#include "comm/launch/launch_id.hpp"
#include "core/error.hpp"
#include "transports/interfaces.hpp"

namespace tacc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const Variables torch = {{"RANK", "3"},        {"WORLD_SIZE", "8"},      {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RUN_ID", "7"}};
const Variables openMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"OMPI_MCA_ess_base_jobid", "99"}};
const Variables hydra = {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}};
const Variables slurm = {{"SLURM_PROCID", "2"}, {"SLURM_STEP_ID", "0"},        {"SLURM_NTASKS", "4"},
                         {"SLURM_JOB_ID", "5"}, {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", "node[07-08]"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

std::string refusalOf(const Variables& variables, std::string_view rendezvous = "") {
  try {
    (void)readLaunch(variables, rendezvous);
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidUsage);
    return error.what();
  }
  return "accepted";
}

TEST(Launch, Torchrun) {
  const Launch launch = readLaunch(torch, "");
  EXPECT_EQ(launch.launcher, "torchrun");
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.ranks, 8);
  EXPECT_EQ(launch.spread, Spread::severalHosts);
  EXPECT_EQ(launch.meeting.host, "a");
  EXPECT_EQ(launch.meeting.port, 30500);  // 29500 is torch's own
  EXPECT_THAT(launch.key, ElementsAre("TORCHELASTIC_RUN_ID=7", "MASTER_ADDR=a", "MASTER_PORT=29500"));
  EXPECT_EQ(readLaunch(with(torch, {{"MASTER_PORT", "65000"}}), "").meeting.port, 64000);
  EXPECT_EQ(readLaunch(with(torch, {{"LOCAL_WORLD_SIZE", "8"}}), "").spread, Spread::oneHost);
  EXPECT_EQ(readLaunch(without(torch, "LOCAL_WORLD_SIZE"), "").spread, Spread::unknown);
}

TEST(Launch, OpenMpi) {
  const Launch launch = readLaunch(openMpi, "");
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.ranks, 2);
  EXPECT_EQ(launch.spread, Spread::oneHost);
  EXPECT_THAT(launch.key, ElementsAre("OMPI_MCA_ess_base_jobid=99"));
  EXPECT_THAT(refusalOf(without(openMpi, "OMPI_MCA_ess_base_jobid")), HasSubstr("which job"));
  EXPECT_THAT(refusalOf(with(openMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})), HasSubstr("TACC_RENDEZVOUS=HOST:PORT"));
}

TEST(Launch, Hydra) {
  const Launch launch = readLaunch(hydra, "");
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.ranks, 4);
  EXPECT_EQ(launch.spread, Spread::oneHost);
  EXPECT_TRUE(launch.needsManager);
  const Launch wide = readLaunch(with(hydra, {{"MPI_LOCALNRANKS", "2"}}), "node1:29400");
  EXPECT_FALSE(wide.needsManager);  // each host has its own
  EXPECT_EQ(wide.meeting.host, "node1");
  EXPECT_EQ(wide.meeting.port, 29400);
  EXPECT_THAT(refusalOf(with(hydra, {{"MPI_LOCALNRANKS", "2"}})), HasSubstr("no address"));
}

TEST(Launch, Slurm) {
  const Launch launch = readLaunch(slurm, "");
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.ranks, 4);
  EXPECT_EQ(launch.spread, Spread::severalHosts);
  EXPECT_EQ(launch.meeting.host, "node07");
  EXPECT_GE(launch.meeting.port, 15000);
  EXPECT_LT(launch.meeting.port, 30000);
  EXPECT_EQ(readLaunch(slurm, "").meeting.port, launch.meeting.port);
  EXPECT_NE(readLaunch(with(slurm, {{"SLURM_STEP_ID", "1"}}), "").meeting.port, launch.meeting.port);
  EXPECT_EQ(readLaunch(with(slurm, {{"SLURM_STEP_NUM_NODES", "1"}}), "").spread, Spread::oneHost);
  // A batch script is no step: it has the job's number of tasks, but it is one process.
  EXPECT_THAT(refusalOf(without(slurm, "SLURM_STEP_ID")), HasSubstr("SLURM_PROCID=2"));
}

/// A requeued job keeps its number; processes of the run before must not meet those of the new one.
TEST(Launch, ARequeuedSlurmJobIsAnotherOne) {
  const auto keyOf = [](const Variables& variables) { return readLaunch(variables, "").key; };
  const Variables again = with(slurm, {{"SLURM_RESTART_COUNT", "1"}});
  EXPECT_THAT(keyOf(again), testing::Contains("SLURM_RESTART_COUNT=1"));
  EXPECT_NE(keyOf(again), keyOf(slurm));
  EXPECT_NE(keyOf(with(slurm, {{"SLURM_STEP_ID", "1"}})), keyOf(slurm));
  EXPECT_NE(readLaunch(again, "").meeting.port, readLaunch(slurm, "").meeting.port);
}

TEST(Launch, OnlyOpenMpisKeyIsSecret) {
  EXPECT_FALSE(readLaunch(torch, "").isKeySecret);
  EXPECT_FALSE(readLaunch(slurm, "").isKeySecret);
  EXPECT_FALSE(readLaunch(hydra, "").isKeySecret);
  EXPECT_FALSE(readLaunch(openMpi, "").isKeySecret);
  EXPECT_TRUE(readLaunch(with(openMpi, {{"OMPI_MCA_orte_precondition_transports", "1-2"}}), "").isKeySecret);
}

TEST(Launch, RanksMeetAtPortsThatAreAllowed) {
  for (const Variables& variables : {torch, slurm}) {
    const Launch launch = readLaunch(with(variables, {{"TACC_PORT_RANGE", "400-403"}}), "");
    EXPECT_GE(launch.meeting.port, 400);
    EXPECT_LE(launch.meeting.port, 403);
  }
}

TEST(Launch, OthersOfTheField) {
  const Launch jsrun = readLaunch({{"JSM_NAMESPACE_RANK", "2"},
                                   {"JSM_NAMESPACE_SIZE", "8"},
                                   {"JSM_NAMESPACE_LOCAL_SIZE", "4"},
                                   {"LSB_JOBID", "77"},
                                   {"PMIX_NAMESPACE", "n"},
                                   {"PMIX_RANK", "2"}},
                                  "");
  EXPECT_EQ(jsrun.launcher, "jsrun");
  EXPECT_EQ(jsrun.spread, Spread::severalHosts);
  EXPECT_EQ(jsrun.store, Store::pmix);
  const Variables rsh = {{"MV2_COMM_WORLD_RANK", "3"},
                         {"MV2_COMM_WORLD_SIZE", "4"},
                         {"MV2_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"MPIRUN_ID", "1234"}};
  EXPECT_EQ(readLaunch(rsh, "node1:29400").launcher, "mpirun_rsh");
  EXPECT_EQ(readLaunch(rsh, "node1:29400").rank, 3);
  EXPECT_THAT(refusalOf(rsh), HasSubstr("TACC_RENDEZVOUS=HOST:PORT"));
  const Variables pals = {
      {"PALS_RANKID", "1"}, {"PALS_APID", "a-b"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"PMI_LOCAL_SIZE", "4"}};
  EXPECT_EQ(readLaunch(pals, "").launcher, "PALS");
  EXPECT_EQ(readLaunch(pals, "").spread, Spread::oneHost);
  EXPECT_THAT(readLaunch(pals, "").key, ElementsAre("PALS_APID=a-b"));
}

TEST(Launch, AStoreIsAskedOnlyWhereNothingElseSaysWhereRanksMeet) {
  const Variables wide = with(hydra, {{"MPI_LOCALNRANKS", "2"}, {"PMI_FD", "6"}});
  EXPECT_EQ(readLaunch(wide, "").store, Store::pmi);
  EXPECT_EQ(readLaunch(wide, "node1:29400").store, Store::none);
  EXPECT_EQ(readLaunch(with(hydra, {{"PMI_FD", "6"}}), "").store, Store::none);  // one host
  EXPECT_THAT(refusalOf(without(wide, "PMI_FD")), HasSubstr("TACC_RENDEZVOUS=HOST:PORT"));
  const Variables spread = with(openMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  EXPECT_EQ(readLaunch(with(spread, {{"PMIX_NAMESPACE", "n"}, {"PMIX_RANK", "1"}}), "").store, Store::pmix);
}

TEST(Launch, WhoAProcessIsNeedsNoMeetingPoint) {
  const LaunchPlace place = readPlace(with(hydra, {{"MPI_LOCALNRANKS", "2"}}));
  EXPECT_EQ(place.launcher, "Hydra");
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.ranks, 4);
  EXPECT_THROW(readPlace(without(hydra, "PMI_SIZE")), Error);
}

TEST(Launch, TheInnerLauncherCounts) {
  EXPECT_EQ(readLaunch(with(slurm, hydra), "").launcher, "Hydra");
  EXPECT_EQ(readLaunch(with(slurm, openMpi), "").launcher, "Open MPI");
  EXPECT_EQ(readLaunch(with(openMpi, torch), "").launcher, "torchrun");
  EXPECT_EQ(readLaunch(with(slurm, {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}), "").launcher, "Slurm");
}

TEST(Launch, WhatIsMissingOrWrongIsNamed) {
  EXPECT_THAT(refusalOf({}), AllOf(HasSubstr("torchrun (RANK"), HasSubstr("SLURM_PROCID"), HasSubstr("Found: none")));
  EXPECT_THAT(refusalOf({{"RANK", "1"}}), HasSubstr("Found: RANK=1"));
  EXPECT_THAT(refusalOf(without(hydra, "PMI_SIZE")), HasSubstr("PMI_SIZE not set"));
  EXPECT_THAT(refusalOf(with(torch, {{"RANK", "8"}})),
              HasSubstr("RANK=\"8\" cannot be: it must be a number from 0 to 7"));
  EXPECT_THAT(refusalOf(with(torch, {{"RANK", "two"}})), HasSubstr("RANK=\"two\""));
  EXPECT_THAT(refusalOf(with(torch, {{"LOCAL_WORLD_SIZE", "9"}})), HasSubstr("LOCAL_WORLD_SIZE=\"9\""));
  EXPECT_THAT(refusalOf(with(torch, {{"MASTER_PORT", "0"}})), HasSubstr("MASTER_PORT=\"0\" is no port"));
  EXPECT_THAT(refusalOf(without(torch, "MASTER_ADDR")), HasSubstr("TACC_RENDEZVOUS=HOST:PORT"));
  for (const char* wrong : {"node1", "node1:", ":80", "node1:0", "node1:65536", "fd00::2:80", "a b:80"}) {
    EXPECT_THAT(refusalOf(torch, wrong), HasSubstr(fmt::format("TACC_RENDEZVOUS=\"{}\" is not HOST:PORT", wrong)));
  }
}

TEST(Launch, TheUsersMeetingPointIsStronger) {
  EXPECT_EQ(readLaunch(torch, "b:80").meeting.host, "b");
  EXPECT_EQ(readLaunch(torch, "[fd00::2]:80").meeting.host, "fd00::2");
  EXPECT_EQ(readLaunch({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "b:80").meeting.port, 80);
  EXPECT_EQ(readLaunch({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, "b:80").launcher, "another PMI");
}

TEST(Launch, FirstHostOfAList) {
  EXPECT_EQ(firstHostOf("node1"), "node1");
  EXPECT_EQ(firstHostOf("node1,node2"), "node1");
  EXPECT_EQ(firstHostOf("node[07-09,12],gpu1"), "node07");
  EXPECT_EQ(firstHostOf("node[3,5]"), "node3");
  EXPECT_EQ(firstHostOf("gpu1,node[07-09]"), "gpu1");
  EXPECT_EQ(firstHostOf("rack[1-2]n[4-5].example,x"), "rack1n4.example");
  EXPECT_EQ(firstHostOf("node[07"), "");
}

TEST(LaunchId, IsEqualOnAllRanksAndForNothingElse) {
  const auto idOf = [](const Launch& launch, std::string_view secret, unsigned sequence) {
    return openUniqueId(deriveUniqueId(launch, secret, sequence, {InetAddress(InetAddress::V4{192, 0, 2, 7})}));
  };
  const Launch launch = readLaunch(torch, "");
  Launch other = launch;
  other.rank = 5;
  const UniqueIdContents id = idOf(launch, "", 0);
  EXPECT_EQ(id.secret, idOf(other, "", 0).secret);
  EXPECT_EQ(rendezvousName(id), rendezvousName(idOf(other, "", 0)));
  EXPECT_EQ(describeAddressesIn(id), "192.0.2.7:30500");
  EXPECT_NE(id.secret, idOf(launch, "", 1).secret);
  EXPECT_NE(id.secret, idOf(launch, "open sesame", 0).secret);
  EXPECT_NE(id.secret, idOf(readLaunch(with(torch, {{"TORCHELASTIC_RUN_ID", "8"}}), ""), "", 0).secret);
  EXPECT_TRUE(addressesIn(idOf(readLaunch(hydra, ""), "", 0)).empty());  // the unix socket is enough
}

TEST(LaunchNumber, OnlyAnAttemptThatSucceedsUsesANumberUp) {
  for (int attempt = 0; attempt < 3; ++attempt) EXPECT_EQ(LaunchNumber().value(), 0U);
  LaunchNumber first;
  {
    const LaunchNumber meanwhile;
    EXPECT_EQ(meanwhile.value(), 1U);
  }
  first.keep();
  LaunchNumber second;
  EXPECT_EQ(second.value(), 1U);
  second.giveBack();
  EXPECT_EQ(LaunchNumber().value(), 1U);
}

TEST(LaunchId, LoopbackIsNoMeetingPointOfSeveralHosts) {
  const auto resolve = [](const Variables& variables) { return resolveMeetingPoint(readLaunch(variables, ""), ""); };
  try {
    (void)resolve(with(torch, {{"MASTER_ADDR", "localhost"}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidUsage);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"localhost\""), HasSubstr("several hosts")));
  }
  const Variables alone = without(with(torch, {{"MASTER_ADDR", "127.0.0.1"}}), "LOCAL_WORLD_SIZE");
  EXPECT_EQ(resolve(alone).at(0).host(), "127.0.0.1");
  EXPECT_EQ(resolve(with(torch, {{"MASTER_ADDR", "192.0.2.9"}})).at(0).host(), "192.0.2.9");
  for (const char* text : {"fd00::9", "[fd00::9]"})
    EXPECT_EQ(resolve(with(torch, {{"MASTER_ADDR", text}})).at(0).host(), "fd00::9");
  try {
    (void)resolve(with(torch, {{"MASTER_ADDR", "fe80::1"}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"fe80::1\""), HasSubstr("is link-local")));
  }
}

TEST(LaunchId, ANameThatIsNotKnownIsNamed) {
  try {
    (void)resolveMeetingPoint(readLaunch(with(torch, {{"MASTER_ADDR", "no-such-host.invalid"}}), ""), "");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccSystemError);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"no-such-host.invalid\""), HasSubstr("MASTER_ADDR")));
  }
}

}  // namespace
}  // namespace tacc
