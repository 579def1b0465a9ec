// Saved states: a training that is stopped and goes on gives the bits of one that was not; what is damaged or foreign
// is refused, and all stays as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "comm/rank_harness.hpp"
#include "easgd/modes.hpp"
#include "training.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/tacc_easgd_XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string file(int rank) const { return path_ + "/state." + std::to_string(rank); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr std::size_t count = 40009;

taccEasgdConfig_t configOf(taccEasgdMode_t mode, float momentum, int period) {
  taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
  config.mode = mode;
  config.learningRate = 0.05f;
  config.momentum = momentum;
  config.period = period;
  return config;
}

/// One rank's training.
struct Session {
  Session(taccComm_t communicator, int number, const taccEasgdConfig_t& config)
      : comm(communicator), rank(number), weights(count), gradient(count) {
    for (std::size_t i = 0; i < count; ++i) weights[i] = firstWeight(i);
    expectSuccess(taccEasgdCreate(&easgd, weights.data(), count, comm, &config), comm);
  }
  ~Session() { expectSuccess(taccEasgdDestroy(easgd), comm); }
  void run(int from, int to) {
    for (int step = from; step < to; ++step) {
      fillGradient(gradient, rank, step, weights.data());
      expectSuccess(taccEasgdStep(easgd, gradient.data()), comm);
    }
  }
  std::vector<float> center() {
    std::vector<float> values(count);
    expectSuccess(taccEasgdCenter(easgd, values.data()), comm);
    return values;
  }

  taccComm_t comm;
  int rank;
  std::vector<float> weights, gradient;
  taccEasgd_t easgd = nullptr;
};

/// Stops after 4 and after 5 steps: with and without an exchange under way where the mode overlaps.
TEST(EasgdCheckpoint, goesOnWithTheSameBits) {
  for (const EasgdMode& mode : easgdModes()) {
    if (!mode.isSynchronous) continue;
    for (const int stop : {4, 5}) {
      const TemporaryFolder folder;
      runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
        const taccEasgdConfig_t config = configOf(mode.mode, 0.9f, 3);
        std::vector<float> weights, center;
        {
          Session whole(comm, rank, config);
          expectSuccess(taccEasgdStart(whole.easgd), comm);
          whole.run(0, stop);
          expectSuccess(taccEasgdSave(whole.easgd, folder.file(rank).c_str()), comm);
          whole.run(stop, 10);
          center = whole.center();
          weights = whole.weights;
        }
        Session resumed(comm, rank, config);
        expectSuccess(taccEasgdLoad(resumed.easgd, folder.file(rank).c_str()), comm);
        resumed.run(stop, 10);
        EXPECT_EQ(resumed.center(), center) << mode.name << ", stopped after " << stop;
        EXPECT_EQ(resumed.weights, weights) << mode.name << ", stopped after " << stop;
        taccEasgdInfo_t info{};
        info.size = sizeof info;
        expectSuccess(taccEasgdInfo(resumed.easgd, &info), comm);
        EXPECT_EQ(info.steps, 10u);
        EXPECT_EQ(info.exchanges, 3u);
      });
      // Nothing but the states is left.
      EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
    }
  }
}

/// A file of one rank that is changed by `damage` is refused by all ranks, with this sentence on that rank.
void expectRefused(const std::function<void(const std::string& path)>& damage, const std::string& sentence,
                   const taccEasgdConfig_t& savedBy, const taccEasgdConfig_t& loadedBy) {
  const TemporaryFolder folder;
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    {
      Session saved(comm, rank, savedBy);
      expectSuccess(taccEasgdStart(saved.easgd), comm);
      saved.run(0, 2);
      expectSuccess(taccEasgdSave(saved.easgd, folder.file(rank).c_str()), comm);
    }
    expectSuccess(taccBarrier(comm, nullptr), comm);  // all have saved
    if (rank == 1) damage(folder.file(rank));
    Session other(comm, rank, loadedBy);
    expectSuccess(taccEasgdStart(other.easgd), comm);
    other.run(0, 1);
    const std::vector<float> before = other.weights, center = other.center();
    EXPECT_NE(taccEasgdLoad(other.easgd, folder.file(rank).c_str()), taccSuccess);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr(rank == 1 ? sentence : "rank 1 could not load"));
    EXPECT_EQ(other.weights, before);
    EXPECT_EQ(other.center(), center);
    other.run(1, 3);  // and training goes on
  });
}

void changeByte(const std::string& path, std::size_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char old = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(old ^ 0x10));
}

TEST(EasgdCheckpoint, refusesWhatIsDamaged) {
  const taccEasgdConfig_t config = configOf(taccEasgdSync2, 0.9f, 1);
  const auto size = [](const std::string& path) { return std::filesystem::file_size(path); };
  for (const double place : {0.1, 0.5, 0.9, 0.9999999})
    expectRefused(
        [&](const std::string& path) {
          changeByte(path, static_cast<std::size_t>(static_cast<double>(size(path)) * place));
        },
        "is damaged", config, config);
  expectRefused([&](const std::string& path) { changeByte(path, 0); }, "no state of an EASGD", config, config);
  expectRefused([&](const std::string& path) { std::filesystem::resize_file(path, size(path) - 1); }, "is damaged",
                config, config);
  expectRefused([&](const std::string& path) { std::filesystem::resize_file(path, 20); }, "ends early", config, config);
  expectRefused([&](const std::string& path) { std::filesystem::resize_file(path, 0); }, "ends early", config, config);
  expectRefused([&](const std::string& path) { std::filesystem::remove(path); }, "cannot open", config, config);
}

TEST(EasgdCheckpoint, refusesWhatIsForeign) {
  const auto swap = [](const std::string& path) {
    std::filesystem::copy_file(path.substr(0, path.size() - 1) + "0", path,
                               std::filesystem::copy_options::overwrite_existing);
  };
  const taccEasgdConfig_t config = configOf(taccEasgdSync2, 0, 1);
  expectRefused(swap, "it is of rank 0 of 2, and this is rank 1 of 2", config, config);
}

/// What all ranks refuse alike.
TEST(EasgdCheckpoint, refusesAnotherModeOrMomentum) {
  const TemporaryFolder folder;
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    {
      Session saved(comm, rank, configOf(taccEasgdSync2, 0, 1));
      expectSuccess(taccEasgdStart(saved.easgd), comm);
      expectSuccess(taccEasgdSave(saved.easgd, folder.file(rank).c_str()), comm);
    }
    const std::pair<taccEasgdConfig_t, std::string> others[] = {
        {configOf(taccEasgdSync1, 0, 1), "it is of mode sync2, and this is mode sync1"},
        {configOf(taccEasgdSync2, 0.5f, 1), "as with another momentum"}};
    for (const auto& [config, sentence] : others) {
      Session other(comm, rank, config);
      EXPECT_NE(taccEasgdLoad(other.easgd, folder.file(rank).c_str()), taccSuccess);
      EXPECT_THAT(taccGetLastError(comm), HasSubstr(sentence));
      EXPECT_NE(taccEasgdStep(other.easgd, other.gradient.data()), taccSuccess);
      EXPECT_THAT(taccGetLastError(comm), HasSubstr("call taccEasgdStart or taccEasgdLoad first"));
    }
  });
}

TEST(EasgdCheckpoint, ranksThatSavedAtDifferentStepsAreTold) {
  const TemporaryFolder folder;
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
    Session session(comm, rank, configOf(taccEasgdSync2, 0, 100));
    expectSuccess(taccEasgdStart(session.easgd), comm);
    session.run(0, 1 + rank);
    expectSuccess(taccEasgdSave(session.easgd, folder.file(rank).c_str()), comm);
    EXPECT_NE(taccEasgdLoad(session.easgd, folder.file(rank).c_str()), taccSuccess);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("no rank loaded its state"));
  });
}

/// A folder that is not there, and a disk that is full.
TEST(EasgdCheckpoint, keepsTheOldFileWhereTheNewOneCannotBe) {
  const TemporaryFolder folder;
  runRanks(RankKind::processes, 1, [&](taccComm_t comm, int rank) {
    Session session(comm, rank, configOf(taccEasgdSync2, 0, 1));
    expectSuccess(taccEasgdStart(session.easgd), comm);
    EXPECT_EQ(taccEasgdSave(session.easgd, (folder.path() + "/none/state").c_str()), taccSystemError);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("none/state"));
    // In the midst of writing: what was written beside it is taken away again, and the old state loads.
    session.run(0, 1);
    expectSuccess(taccEasgdSave(session.easgd, folder.file(0).c_str()), comm);
    session.run(1, 2);
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = count;  // bytes: a part of the weights
    ::setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_EQ(taccEasgdSave(session.easgd, folder.file(0).c_str()), taccSystemError);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("File too large"));
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
    expectSuccess(taccEasgdLoad(session.easgd, folder.file(0).c_str()), comm);
    taccEasgdInfo_t info{};
    info.size = sizeof info;
    expectSuccess(taccEasgdInfo(session.easgd, &info), comm);
    EXPECT_EQ(info.steps, 1u);
  });
}

/// As where "latest" is a link to a file on another disk, or in another folder, which need not be there yet.
TEST(EasgdCheckpoint, replacesWhatALinkLeadsTo) {
  const TemporaryFolder folder;
  runRanks(RankKind::processes, 1, [&](taccComm_t comm, int rank) {
    Session session(comm, rank, configOf(taccEasgdSync2, 0, 1));
    expectSuccess(taccEasgdStart(session.easgd), comm);
    const std::string place = folder.path() + "/far/state", latest = folder.path() + "/latest";
    std::filesystem::create_directory(folder.path() + "/far");
    std::filesystem::create_symlink("far/second", latest);
    std::filesystem::create_symlink(place, folder.path() + "/far/second");
    for (const bool isThere : {false, true}) {
      EXPECT_EQ(std::filesystem::exists(place), isThere);
      if (isThere) std::filesystem::permissions(place, std::filesystem::perms::owner_read);
      session.run(isThere ? 1 : 0, isThere ? 2 : 1);
      expectSuccess(taccEasgdSave(session.easgd, latest.c_str()), comm);
      EXPECT_TRUE(std::filesystem::is_symlink(latest));
      EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(place)));
      EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() + "/far"), {}), 2);
      expectSuccess(taccEasgdLoad(session.easgd, place.c_str()), comm);
    }
    EXPECT_EQ(std::filesystem::status(place).permissions(), std::filesystem::perms::owner_read);
    constexpr auto ofAll = static_cast<std::filesystem::perms>(0666);  // more than the process's mask leaves
    std::filesystem::permissions(place, ofAll);
    expectSuccess(taccEasgdSave(session.easgd, latest.c_str()), comm);
    EXPECT_EQ(std::filesystem::status(place).permissions(), ofAll);
    const std::string circle = folder.path() + "/circle";
    std::filesystem::create_symlink("circle", circle);
    EXPECT_EQ(taccEasgdSave(session.easgd, circle.c_str()), taccSystemError);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("circle"));
  });
}

/// A device, a pipe or a folder is neither replaced nor waited for.
TEST(EasgdCheckpoint, leavesAloneWhatIsNoFile) {
  const TemporaryFolder folder;
  runRanks(RankKind::processes, 1, [&](taccComm_t comm, int rank) {
    Session session(comm, rank, configOf(taccEasgdSync2, 0, 1));
    expectSuccess(taccEasgdStart(session.easgd), comm);
    const std::string pipe = folder.path() + "/pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string& path : {pipe, folder.path()}) {
      EXPECT_EQ(taccEasgdSave(session.easgd, path.c_str()), taccInvalidArgument);
      EXPECT_THAT(taccGetLastError(comm), HasSubstr("is no regular file"));
      EXPECT_EQ(taccEasgdLoad(session.easgd, path.c_str()), taccInvalidArgument);
      EXPECT_THAT(taccGetLastError(comm), HasSubstr("is no regular file"));
    }
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
    EXPECT_EQ(taccEasgdSave(session.easgd, ""), taccInvalidArgument);
    session.run(0, 1);
  });
}

}  // namespace
}  // namespace tacc::test
