// Files that nobody can use, made from drawn ones by one mistake: the message names the line, and what is wrong there.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "drawn_topology.hpp"
#include "golden.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Lines = std::vector<std::string>;

/// What the message must say: the line of the mistake, and all of these words.
struct Expected {
  std::size_t line;
  Lines words;
};

Lines linesOfText(const std::string& text) {
  Lines lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// A drawn topology as a file, and a place in it.
class Mistakes {
 public:
  Mistakes(const Topology& topology, std::uint32_t seed)
      : topology_(topology), random_(seed), lines_(linesOfText(topologyToToml(topology))) {}

  std::string text() const { return fmt::format("{}\n", fmt::join(lines_, "\n")); }

  std::optional<Expected> hostTwice() {
    const auto listed = std::ranges::find_if(lines_, [](const auto& s) { return s.starts_with("hosts = \""); });
    if (listed == lines_.end()) return std::nullopt;
    const std::string host = topology_.host(below(topology_.hosts()));
    listed->insert(listed->size() - 1, "," + host);
    const auto line = static_cast<std::size_t>(listed - lines_.begin()) + 1;
    return Expected{line, {fmt::format("the host {}", host.substr(0, 40)), "stands twice"}};
  }

  std::optional<Expected> strangerInGroup() {
    const auto line = groupLine();
    if (!line) return std::nullopt;
    lines_[*line].insert(lines_[*line].size() - 1, ",stranger.example");
    return Expected{*line + 1, {"there is no", "\"stranger.example\""}};
  }

  std::optional<Expected> hostInNoGroup() {
    const auto line = groupLine();
    if (!line) return std::nullopt;
    std::size_t header = *line;
    while (!lines_[header].starts_with('[')) --header;
    if (*line == header + 1 && (*line + 1 == lines_.size() || !lines_[*line + 1].ends_with('"'))) return std::nullopt;
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(*line));
    return Expected{header + 1, {"in no group"}};
  }

  std::optional<Expected> unknownKey() {
    const auto line =
        find([](const std::string& s) { return s.starts_with("latency = ") || s.starts_with("name = "); });
    if (!line) return std::nullopt;
    lines_[*line].insert(3, "x");
    return Expected{*line + 1, {"unknown key"}};
  }

  std::optional<Expected> badRate() {
    return badFigure("B/s\"", {"0 GB/s", "-3 GB/s", "fast", "7 GB", "", "nan GB/s"});
  }
  std::optional<Expected> badLatency() { return badFigure(" us\"", {"0 us", "-1 us", "soon", "3", "", "1 fortnight"}); }

  std::optional<Expected> uplinkOfNoGroup() {
    const auto line = find([](const std::string& s) { return s == "[level.uplinks]"; });
    if (!line) return std::nullopt;
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(*line) + 1, "\"no such group\" = \"1 GB/s\"");
    return Expected{*line + 2, {"there is no such group; groups are"}};
  }

  std::optional<Expected> uplinkOfNoHost() {
    const auto line = find([](const std::string& s) { return s == "[node.uplinks]"; });
    if (!line) return std::nullopt;
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(*line) + 1, "\"stranger.example\" = \"1 GB/s\"");
    return Expected{*line + 2, {"there is no host stranger.example"}};
  }

  std::optional<Expected> openQuotation() {
    const auto line = find([](const std::string& s) { return s.ends_with('"'); });
    if (!line) return std::nullopt;
    lines_[*line].pop_back();
    return Expected{*line + 1, {""}};
  }

 private:
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  /// One of the lines that are so.
  std::optional<std::size_t> find(const std::function<bool(const std::string&)>& isSo) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (isSo(lines_[i])) found.push_back(i);
    if (found.empty()) return std::nullopt;
    return found[below(static_cast<std::uint32_t>(found.size()))];
  }

  /// A line below [level.groups].
  std::optional<std::size_t> groupLine() {
    std::vector<std::size_t> found;
    bool isInside = false;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].starts_with('[')) isInside = lines_[i] == "[level.groups]";
      if (isInside && lines_[i].ends_with('"')) found.push_back(i);
    }
    if (found.empty()) return std::nullopt;
    return found[below(static_cast<std::uint32_t>(found.size()))];
  }

  std::optional<Expected> badFigure(const std::string& ending, const Lines& figures) {
    const auto line = find([&](const std::string& s) { return s.ends_with(ending); });
    if (!line) return std::nullopt;
    const std::string& figure = figures[below(static_cast<std::uint32_t>(figures.size()))];
    lines_[*line].replace(lines_[*line].find("= \"") + 3, std::string::npos, figure + "\"");
    return Expected{*line + 1, {fmt::format("\"{}\", but must be", figure)}};
  }

  const Topology& topology_;
  std::mt19937 random_;
  Lines lines_;
};

TEST(Misfits, EveryMistakeInADrawnFileIsNamedWithItsLine) {
  using Make = std::optional<Expected> (Mistakes::*)();
  const std::map<std::string, Make> kinds = {{"host twice", &Mistakes::hostTwice},
                                             {"stranger in a group", &Mistakes::strangerInGroup},
                                             {"host in no group", &Mistakes::hostInNoGroup},
                                             {"unknown key", &Mistakes::unknownKey},
                                             {"bad rate", &Mistakes::badRate},
                                             {"bad latency", &Mistakes::badLatency},
                                             {"uplink of no group", &Mistakes::uplinkOfNoGroup},
                                             {"uplink of no host", &Mistakes::uplinkOfNoHost},
                                             {"open quotation", &Mistakes::openQuotation}};
  std::map<std::string, int> made;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Topology topology = drawnTopology(seed);
    if (topology.hosts() > 500) continue;
    for (const auto& [kind, make] : kinds) {
      Mistakes file(topology, seed);
      const std::optional<Expected> expected = (file.*make)();
      if (!expected) continue;
      ++made[kind];
      const std::string message = messageOf([&] { (void)topologyFromToml(file.text(), "t.toml"); });
      EXPECT_THAT(message, StartsWith(fmt::format("t.toml:{}:", expected->line))) << kind << " in\n" << file.text();
      for (const std::string& word : expected->words) EXPECT_THAT(message, HasSubstr(word)) << kind;
    }
  }
  for (const auto& [kind, make] : kinds) EXPECT_GE(made[kind], 10) << kind;
}

/// A job on hosts of which the file has some, all or none, in any order.
TEST(Misfits, AFileThatLacksHostsOfTheJobIsNamedWithThem) {
  const std::string path = fmt::format("{}/misfit_test.{}.toml", testing::TempDir(), ::getpid());
  int fits = 0, lacks = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Topology topology = drawnTopology(seed);
    if (topology.hosts() > 500) continue;
    std::mt19937 random(seed);
    SourceContext context;
    std::vector<std::string> strangers;
    for (const std::string& host : topology.hostNames())
      if (random() % 2 == 0) context.hosts.emplace_back().host = host;
    for (auto i = random() % 3; i > 0; --i) {
      strangers.push_back(i == 1 ? "stranger" : "other.stranger");
      context.hosts.emplace_back().host = strangers.back();
    }
    std::shuffle(context.hosts.begin(), context.hosts.end(), random);
    if (context.hosts.size() < 2) continue;
    std::ofstream(path) << topologyToToml(topology);
    context.surroundings = {"/nowhere", [](const std::string&) { return std::string(); }};
    context.files = {path};
    if (strangers.empty()) {
      EXPECT_EQ(discoverTopology(context).discovery.topology.hosts(), context.hosts.size());
      ++fits;
      continue;
    }
    const std::string message = messageOf([&] { (void)discoverTopology(context); });
    EXPECT_THAT(message, StartsWith(path + ": "));
    EXPECT_THAT(message, HasSubstr("does not have the host"));
    for (const std::string& stranger : strangers) EXPECT_THAT(message, HasSubstr(stranger));
    ++lacks;
  }
  std::filesystem::remove(path);
  EXPECT_GE(fits, 20);
  EXPECT_GE(lacks, 40);
}

}  // namespace
}  // namespace tacc::test
