// Topologies that were measured and kept.
#include "topology/model/saved.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "golden.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Saved : public testing::Test {
 protected:
  Saved() {
    char name[] = "/tmp/tacc_saved_XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~Saved() override { std::filesystem::remove_all(root_); }
  Surroundings here() {
    return {root_, [this](const std::string& name) { return variables_[name]; }};
  }
  /// Of the time at which it was last written.
  static void age(const std::string& path, std::int64_t seconds) {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  std::string root_;
  std::map<std::string, std::string> variables_;
};

TEST_F(Saved, ThereIsAFolderOfTheUser) {
  EXPECT_EQ(folderOfSaved(here()), "");
  EXPECT_THAT(savedFiles(here(), "tcp"), IsEmpty());
  EXPECT_THAT(messageOf([&] { pathOfSaved(here(), "tcp", {"a"}); }), HasSubstr("neither XDG_CACHE_HOME nor HOME"));
  variables_["HOME"] = "/home/me";
  EXPECT_EQ(folderOfSaved(here()), root_ + "/home/me/.cache/tacc");
  variables_["XDG_CACHE_HOME"] = "/scratch/me";
  EXPECT_EQ(folderOfSaved(here()), root_ + "/scratch/me/tacc");
}

TEST_F(Saved, OneFileAClusterAndTransport) {
  variables_["HOME"] = "/me";
  const std::string path = pathOfSaved(here(), "tcp", {"n1", "n2", "n3"});
  EXPECT_EQ(path, pathOfSaved(here(), "tcp", {"n3", "n1", "n2"}));
  EXPECT_NE(path, pathOfSaved(here(), "ucx", {"n1", "n2", "n3"}));
  EXPECT_NE(path, pathOfSaved(here(), "tcp", {"n1", "n2"}));
  EXPECT_NE(pathOfSaved(here(), "tcp", {"n1", "n2"}), pathOfSaved(here(), "tcp", {"n1n", "2"}));
  const std::string hostile = pathOfSaved(here(), "../../etc/passwd", {"n1"});
  EXPECT_EQ(hostile.substr(0, hostile.find_last_of('/')), folderOfSaved(here()));
}

TEST_F(Saved, WhatIsKeptLoadsAsItWasAndTheNewestComesFirst) {
  variables_["HOME"] = "/me";
  const Topology one = golden("three_levels.ibnetdiscover"), other = golden("fat_tree.ibnetdiscover");
  const std::string first = pathOfSaved(here(), "tcp", one.hostNames()),
                    second = pathOfSaved(here(), "tcp", other.hostNames());
  saveTopology(first, one, "measured by a test");
  saveTopology(second, other, "measured by a test");
  saveTopology(pathOfSaved(here(), "ucx", one.hostNames()), one, "over something else");
  std::ofstream(folderOfSaved(here()) + "/topology-tcp-note.txt") << "nothing";
  age(first, 1'000'000);
  age(second, 2'000'000);
  EXPECT_THAT(savedFiles(here(), "tcp"), ElementsAre(second, first));
  age(first, 3'000'000);
  EXPECT_THAT(savedFiles(here(), "tcp"), ElementsAre(first, second));
  EXPECT_EQ(topologyFromToml(readText(first), first), one);
  EXPECT_THAT(readText(first), testing::StartsWith("# measured by a test\n"));
  saveTopology(first, other, "again");
  EXPECT_EQ(topologyFromToml(readText(first), first), other);
  EXPECT_EQ(savedFiles(here(), "tcp").size(), 2u) << "a part of a file was left behind";
  EXPECT_EQ(sourceOfFile(readText(first), first).name, "file");
}

TEST_F(Saved, WhatCannotBeWrittenNamesTheFile) {
  const Topology one = golden("fat_tree.ibnetdiscover");
  std::ofstream(root_ + "/file") << "x";
  EXPECT_THAT(messageOf([&] { saveTopology(root_ + "/file/below/t.toml", one, ""); }), HasSubstr(root_ + "/file"));
  EXPECT_THAT(messageOf([&] { requireSavable(root_ + "/file/below/t.toml"); }), HasSubstr(root_ + "/file"));
  std::filesystem::create_directories(root_ + "/folder/t.toml/x");
  EXPECT_THAT(messageOf([&] { saveTopology(root_ + "/folder/t.toml", one, ""); }),
              HasSubstr(root_ + "/folder/t.toml cannot be written"));
  EXPECT_THAT(messageOf([&] { requireSavable(root_ + "/folder/t.toml"); }),
              HasSubstr(root_ + "/folder/t.toml cannot be written"));
  requireSavable(root_ + "/new/folder/t.toml");
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/new/folder"));
  EXPECT_FALSE(std::filesystem::exists(root_ + "/folder/t.toml." + std::to_string(::getpid()) + ".part"));
}

}  // namespace
}  // namespace tacc::test
