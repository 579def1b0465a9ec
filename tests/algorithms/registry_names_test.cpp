// No algorithm is known by its name outside its own file and the registry: what others have to know of it stands in its
// row. Looks through src/ for all names that the registry has.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/registry.hpp"

namespace tacc::test {
namespace {

namespace fs = std::filesystem;

/// Words that mean other things too: only what programs compare counts, text in quotes, and only outside the files in
/// which it is somebody else's word.
constexpr std::array<std::string_view, 3> everydayWords = {"ring", "chain", "hierarchical"};
struct Elsewhere {
  std::string_view word, files;  // files: the beginning of their path in src/
};
constexpr std::array elsewhere = {
    Elsewhere{"ring", "topology/sources/"},            // Slurm's topology plugin
    Elsewhere{"ring", "comm/probe/saved_survey.cpp"},  // hosts that are measured, one after the other
    Elsewhere{"hierarchical", "easgd/"},               // a mode of elastic averaging
    Elsewhere{"chain", "compute/conv/"},               // two convolutions, one behind the other
    Elsewhere{"chain", "api/c_compute.cpp"},           // likewise
    Elsewhere{"chain", "api/c_conv_chain.cpp"},        // likewise
    Elsewhere{"chain", "api/conv_handle.hpp"},         // likewise
};

/// A file's words: those of comments, those in quotes, and the others, each with its line.
struct Word {
  enum class Kind { code, comment, text } kind;
  std::string text;
  int line;
  bool isWhole = false;  // nothing else stands in the quotes
};

bool isLetter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<Word> wordsOf(const std::string& file) {
  std::vector<Word> words;
  Word::Kind kind = Word::Kind::code;
  bool isBlock = false;  // a comment that goes on over lines
  int line = 1;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const char c = file[i], next = i + 1 < file.size() ? file[i + 1] : '\0';
    if (c == '\n') {
      ++line;
      if (!isBlock) kind = Word::Kind::code;
    } else if (kind == Word::Kind::code && c == '/' && (next == '/' || next == '*')) {
      kind = Word::Kind::comment;
      isBlock = next == '*';
      ++i;
    } else if (kind == Word::Kind::comment && isBlock && c == '*' && next == '/') {
      kind = Word::Kind::code;
      isBlock = false;
      ++i;
    } else if (kind == Word::Kind::code && c == '\'' && i > 0 && !isLetter(file[i - 1])) {
      i = file.find('\'', i + (next == '\\' ? 3 : 2));  // a character
      if (i == std::string::npos) break;
    } else if (kind != Word::Kind::comment && c == '"') {
      kind = kind == Word::Kind::text ? Word::Kind::code : Word::Kind::text;
    } else if (kind == Word::Kind::text && c == '\\') {
      ++i;
    } else if (isLetter(c)) {
      const std::size_t begin = i;
      while (i + 1 < file.size() && isLetter(file[i + 1])) ++i;
      const bool isQuoted = kind == Word::Kind::text && file[begin - 1] == '"' && file.substr(i + 1, 1) == "\"";
      words.push_back({kind, file.substr(begin, i + 1 - begin), line, isQuoted});
    }
  }
  return words;
}

std::string contentsOf(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// "halving_doubling_far": halvingDoublingFarAlgorithm, the object that its file defines.
std::string objectOf(std::string_view name) {
  std::string object;
  bool isNew = false;
  for (const char c : name) {
    if (c != '_') object += isNew ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    isNew = c == '_';
  }
  return object + "Algorithm";
}

struct Source {
  Source(std::string where, const std::string& contents) : path(std::move(where)), words(wordsOf(contents)) {
    for (const Algorithm& algorithm : algorithms())
      for (std::size_t i = 1; i < words.size(); ++i)
        if (words[i].kind == Word::Kind::code && words[i - 1].text == "Algorithm" &&
            words[i].text == objectOf(algorithm.name) && path.ends_with(".cpp"))
          own.push_back(&algorithm);
  }
  std::string path;  // in src/
  std::vector<Word> words;
  std::vector<const Algorithm*> own;  // that it defines
};

std::vector<Source> sources() {
  std::vector<Source> all;
  const fs::path root = TACC_TEST_SOURCES;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension();
    if (entry.is_regular_file() && (extension == ".cpp" || extension == ".hpp"))
      all.emplace_back(entry.path().lexically_relative(root), contentsOf(entry.path()));
  }
  return all;
}

/// What is wrong with a word where it stands; empty: nothing.
std::string faultOf(const Source& source, const Word& word) {
  const bool isOfAlgorithms = source.path.starts_with("algorithms/");
  for (const Algorithm& algorithm : algorithms()) {
    if (std::ranges::find(source.own, &algorithm) != source.own.end()) continue;
    if (word.kind == Word::Kind::code && word.text == objectOf(algorithm.name))
      return "the object of " + std::string(algorithm.name);
    if (word.text != algorithm.name) continue;
    const bool isEveryday = std::ranges::find(everydayWords, algorithm.name) != everydayWords.end();
    if (isEveryday && word.kind != Word::Kind::text) continue;
    // Algorithms are compared there, in comments and in the sentences of their rows.
    if (isOfAlgorithms && (word.kind == Word::Kind::comment || (word.kind == Word::Kind::text && !word.isWhole)))
      continue;
    const auto isMeant = [&](const Elsewhere& other) {
      return other.word == word.text && source.path.starts_with(other.files);
    };
    if (!std::ranges::any_of(elsewhere, isMeant)) return "the name of " + std::string(algorithm.name);
  }
  return "";
}

TEST(RegistryNames, StandInTheirOwnFilesAlone) {
  const std::vector<Source> all = sources();
  ASSERT_GT(all.size(), 300U);
  for (const Algorithm& algorithm : algorithms())
    EXPECT_EQ(std::ranges::count_if(
                  all, [&](const Source& source) { return std::ranges::count(source.own, &algorithm) == 1; }),
              1)
        << objectOf(algorithm.name);
  for (const Source& source : all) {
    if (source.path == "algorithms/registry.cpp" || source.path == "algorithms/catalogue.hpp") continue;
    for (const Word& word : source.words) {
      const std::string fault = faultOf(source, word);
      EXPECT_TRUE(fault.empty()) << "src/" << source.path << ":" << word.line << ": here stands " << fault
                                 << "; what this code has to know of it belongs in the algorithm's own file";
    }
  }
}

TEST(RegistryNames, AreFoundWhereverTheyStand) {
  const auto faults = [](std::string path, const std::string& text) {
    const Source source(std::move(path), text);
    std::vector<int> lines;
    for (const Word& word : source.words)
      if (!faultOf(source, word).empty()) lines.push_back(word.line);
    return lines;
  };
  using Lines = std::vector<int>;
  EXPECT_EQ(faults("comm/a.cpp", "int a;\nfind(\"oneshot\");\nint oneshot;"), (Lines{2, 3}));
  EXPECT_EQ(faults("comm/a.cpp", "fail(\"ring and twoshot do\"); // \"ring\""), (Lines{1, 1}));
  EXPECT_EQ(faults("comm/a.cpp", "/* a\n swing */ char c = '\"'; int ring; // a chain\nx = ringAlgorithm;"),
            (Lines{2, 3}));
  EXPECT_EQ(faults("algorithms/a.cpp", "// as twoshot\nname = \"pat\";"), (Lines{2}));
  EXPECT_EQ(faults("topology/sources/slurm.cpp", "kind == \"ring\""), Lines{});
  EXPECT_EQ(faults("algorithms/x.cpp", "const Algorithm ringAlgorithm = {\"ring\"};"), Lines{});
  EXPECT_EQ(faults("comm/a.cpp", "\"a \\\" bine\" rings, prefix_ring"), (Lines{1}));
}

}  // namespace
}  // namespace tacc::test
