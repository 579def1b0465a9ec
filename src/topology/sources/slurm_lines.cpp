#include "topology/sources/slurm_lines.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"

namespace tacc {
namespace {

constexpr std::size_t mostIncludes = 1000;
constexpr std::string_view blanks = " \t\r\v\f";

bool isKeyCharacter(char c) noexcept {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

/// Up to the first '#' that no backslash stands before.
std::string_view withoutComment(std::string_view line) {
  bool isEscaped = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && !isEscaped) return line.substr(0, i);
    isEscaped = line[i] == '\\' && !isEscaped;
  }
  return line;
}

/// Takes away the backslash with which the line goes on in the next, and blanks behind it; false if it has none. Of two
/// backslashes the first only says that the second is one.
bool takeContinuation(std::string_view& line) {
  const std::size_t last = line.find_last_not_of(blanks);
  if (last == std::string_view::npos || line[last] != '\\') return false;
  std::size_t first = last;
  while (first > 0 && line[first - 1] == '\\') --first;
  if ((last - first) % 2 == 1) return false;
  line = line.substr(0, last);
  return true;
}

std::string withoutEscapes(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && ++i == line.size()) break;
    text += line[i];
  }
  return text;
}

/// Where the key of a pair that begins at `begin` ends, if one does: behind it, with or without blanks, stands '='.
std::optional<std::size_t> endOfKey(std::string_view line, std::size_t begin) {
  std::size_t end = begin;
  while (end < line.size() && isKeyCharacter(line[end])) ++end;
  const std::size_t equals = std::min(line.find_first_not_of(blanks, end), line.size());
  if (end == begin || equals == line.size() || line[equals] != '=') return std::nullopt;
  return end;
}

/// One pair from `at` on; moves `at` behind it. Nothing if no pair stands there.
std::optional<std::pair<std::string, std::string>> takePair(std::string_view line, std::size_t& at) {
  const std::optional<std::size_t> keyEnd = endOfKey(line, at);
  if (!keyEnd) return std::nullopt;
  std::string key(line.substr(at, *keyEnd - at));
  const std::size_t equals = line.find('=', *keyEnd);
  std::size_t begin = std::min(line.find_first_not_of(blanks, equals + 1), line.size());
  const std::size_t quoted = begin < line.size() && line[begin] == '"' ? line.find('"', begin + 1) : line.npos;
  if (quoted != line.npos) {
    at = quoted + 1;
    return std::pair(std::move(key), std::string(line.substr(begin + 1, quoted - begin - 1)));
  }
  // "Nodes= Switches=a": what follows is the next pair, and this one is empty.
  if (begin > equals + 1 && endOfKey(line, begin)) begin = equals + 1;
  at = std::min(line.find_first_of(blanks, begin), line.size());
  return std::pair(std::move(key), std::string(line.substr(begin, at - begin)));
}

class LineReader {
 public:
  LineReader(const SlurmIncludes& includes, const std::function<void(const SlurmLine&)>& visit)
      : includes_(includes), visit_(visit) {}

  void read(std::string_view text, const std::string& path) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    std::string joined;
    std::size_t number = 0, first = 1;
    bool goesOn = false;
    for (std::string_view line : linesOf(text)) {
      ++number;
      if (!goesOn) first = number;
      line = withoutComment(line);
      goesOn = takeContinuation(line);
      joined += line;
      if (goesOn) continue;
      say(withoutEscapes(joined), path, first);
      joined.clear();
    }
    say(withoutEscapes(joined), path, first);
  }

  void readFirst(std::string_view text, const std::string& path) {
    chain_.push_back({path, identityOf(path)});
    read(text, path);
  }

 private:
  using Identity = std::optional<std::pair<dev_t, ino_t>>;
  struct Opened {
    std::string path;
    Identity identity;  // so that links do not hide a loop
  };

  static Identity identityOf(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    return std::pair(status.st_dev, status.st_ino);
  }

  void say(std::string_view text, const std::string& path, std::size_t number) {
    std::size_t at = std::min(text.find_first_not_of(blanks), text.size());
    if (at == text.size()) return;
    SlurmLine line;
    line.where = fmt::format("{}:{}", path, number);
    const std::size_t wordEnd = std::min(text.find_first_of(blanks, at), text.size());
    if (sameIgnoringCase(text.substr(at, wordEnd - at), "include") && !endOfKey(text, at)) {
      include(wordsOf(text.substr(wordEnd)), path, line.where);
      return;
    }
    while (at < text.size()) {
      auto pair = takePair(text, at);
      if (!pair) break;
      if (sameIgnoringCase(pair->first, "ClusterName")) clusterName_ = pair->second;
      line.pairs.push_back(std::move(*pair));
      at = std::min(text.find_first_not_of(blanks, at), text.size());
    }
    line.rest = text.substr(at);
    visit_(line);
  }

  void include(const std::vector<std::string_view>& words, const std::string& from, const std::string& where) {
    if (words.size() != 1) {
      fail(taccInvalidArgument, "{}: Include has one file behind it, such as Include racks.conf, not {}", where,
           words.size());
    }
    const std::string named = withClusterName(std::string(words.front()), where);
    const std::string path = named.starts_with('/') ? includes_.root + named : folderOf(from) + named;
    const Identity identity = identityOf(path);
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      if (chain_[i].path != path && (!identity || chain_[i].identity != identity)) continue;
      std::string chain;
      for (std::size_t k = i; k < chain_.size(); ++k) chain += chain_[k].path + " includes ";
      fail(taccInvalidArgument, "{}: files that include each other in a loop: {}{}", where, chain, path);
    }
    const std::optional<std::string> text = identity ? readTextIfThere(path) : std::nullopt;
    if (!text) {
      if (includes_.missing == nullptr) {
        fail(taccInvalidArgument, "{}: the included file {} {}", where, path,
             identity ? "cannot be read" : "does not exist or is no file");
      }
      includes_.missing->push_back(fmt::format("{} ({})", path, where));
      return;
    }
    bytes_ += text->size();
    if (++count_ > mostIncludes || bytes_ > largestTextFile) {
      fail(taccInvalidArgument, "{}: more than {} files or {} MiB are included, which no site has", where, mostIncludes,
           largestTextFile >> 20);
    }
    chain_.push_back({path, identity});
    read(*text, path);
    chain_.pop_back();
  }

  /// %c is the cluster's name in small letters.
  std::string withClusterName(std::string path, const std::string& where) {
    for (std::size_t at = path.find("%c"); at != path.npos; at = path.find("%c", at)) {
      if (clusterName_.empty() && includes_.clusterName) clusterName_ = includes_.clusterName();
      if (clusterName_.empty()) {
        fail(taccInvalidArgument, "{}: %c in {} is the name of the cluster, but no ClusterName= is known before it",
             where, shownText(path));
      }
      std::string name = clusterName_;
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      path.replace(at, 2, name);
      at += name.size();
    }
    return path;
  }

  const SlurmIncludes& includes_;
  const std::function<void(const SlurmLine&)>& visit_;
  std::vector<Opened> chain_;  // the file that is read, and those that include it
  std::string clusterName_;
  std::size_t count_ = 0, bytes_ = 0;
};

}  // namespace

bool sameIgnoringCase(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

std::optional<std::string> SlurmLine::value(std::string_view key) const {
  for (const auto& [name, text] : pairs)
    if (sameIgnoringCase(name, key)) return text;
  return std::nullopt;
}

void readSlurmLines(std::string_view text, const std::string& origin, const SlurmIncludes& includes,
                    const std::function<void(const SlurmLine&)>& visit) {
  LineReader(includes, visit).readFirst(text, origin);
}

std::vector<std::string> expandSlurmList(std::string_view list, std::size_t most) {
  std::string clean;
  int depth = 0;
  bool isBetween = true;  // names: nothing of the next has been seen
  for (const char c : list) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (depth <= 0 && (c == ',' || c == '\n' || blanks.find(c) != blanks.npos)) {
      isBetween = true;
      continue;
    }
    if (isBetween && !clean.empty()) clean += ',';
    isBetween = false;
    clean += c;
  }
  return clean.empty() ? std::vector<std::string>() : expandHosts(clean, most);
}

std::string folderOf(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == path.npos ? 0 : slash + 1));
}

}  // namespace tacc
