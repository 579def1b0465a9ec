// Files as a program may be given them: whole, in pieces through a pipe, and none at all.
#include "core/text_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "core/error.hpp"

namespace tacc {
namespace {

class TextFile : public ::testing::Test {
 protected:
  TextFile() {
    std::string name = ::testing::TempDir() + "text_file_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~TextFile() override {
    for (const char* name : {"plain", "pipe", "link"}) ::unlink(path(name).c_str());
    ::rmdir(folder_.c_str());
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  std::mt19937 draw_{20261129};
};

TEST_F(TextFile, IsReadWholeHoweverItComes) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (int round = 0; round < 30; ++round) {
    std::string text(draw_() % 4 == 0 ? draw_() % 300'000 : draw_() % 300, ' ');
    for (char& c : text) c = static_cast<char>(draw_() % 128);
    std::ofstream(path("plain"), std::ios::binary) << text;
    EXPECT_EQ(readText(path("plain")), text);
    const std::size_t piece = 1 + draw_() % (text.size() + 1);
    const bool pauses = draw_() % 2 == 0 && piece * 20 > text.size();
    std::thread writer([&] {
      std::ofstream pipe(path("pipe"), std::ios::binary);
      for (std::size_t at = 0; at < text.size(); at += piece) {
        pipe << text.substr(at, piece) << std::flush;
        if (pauses) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
    std::string found;
    EXPECT_NO_THROW(found = readText(path("pipe")));
    writer.join();
    EXPECT_EQ(found, text) << "in pieces of " << piece;
  }
}

TEST_F(TextFile, WhatGivesNothingEndsInAnErrorThatNamesIt) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink(path("link").c_str(), path("link").c_str()), 0);
  for (const std::string& name : {path("pipe"), path("link"), path("none"), folder_, std::string("/dev/zero")}) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      (void)readText(name, 0.2);
      ADD_FAILURE() << name << " was read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << name;
  }
}

}  // namespace
}  // namespace tacc
