#include "core/text_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "core/stopwatch.hpp"

namespace tacc {
namespace {

/// A file that is open for reading.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool isOpen() const noexcept { return fd_ >= 0; }
  /// As read(2), which for a pipe waits for its writers, but not for ever: ETIMEDOUT.
  ssize_t read(char* to, std::size_t bytes, double patience) noexcept {
    const Stopwatch watch;  // signals interrupt a wait, and it goes on
    for (;;) {
      pollfd file{fd_, POLLIN, 0};
      const int ready = ::poll(&file, 1, static_cast<int>(std::max(patience - watch.seconds(), 0.0) * 1e3));
      if (ready == 0) errno = ETIMEDOUT;
      const ssize_t size = ready > 0 ? ::read(fd_, to, bytes) : -1;
      if (size >= 0 || (errno != EINTR && errno != EAGAIN)) return size;
    }
  }

 private:
  int fd_;
};

/// False when it cannot be read. Files of /proc tell no size, so the bound is kept while reading.
bool readInto(const std::string& path, std::string& text, double patience) {
  OpenFile file(path);
  if (!file.isOpen()) return false;
  constexpr std::string_view byteOrderMark = "\xef\xbb\xbf";  // which some editors write first
  constexpr std::size_t piece = std::size_t{1} << 16;
  for (ssize_t size = 1; size > 0 && text.size() <= largestTextFile;) {
    const std::size_t before = text.size();
    text.resize(before + piece);
    size = file.read(text.data() + before, piece, patience);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (size < 0) return false;
  }
  if (text.starts_with(byteOrderMark)) text.erase(0, byteOrderMark.size());
  return true;
}

void checkSize(const std::string& path, const std::string& text) {
  if (text.size() > largestTextFile) {
    fail(taccInvalidArgument, "{}: larger than {} MiB, which no file of this kind is", path, largestTextFile >> 20);
  }
}

}  // namespace

std::string readText(const std::string& path, double patience) {
  std::string text;
  if (!readInto(path, text, patience)) failErrno("{} cannot be read", path);
  checkSize(path, text);
  return text;
}

std::optional<std::string> readTextIfThere(const std::string& path) {
  std::string text;
  if (!readInto(path, text, textPatience)) return std::nullopt;
  checkSize(path, text);
  return text;
}

bool isUtf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char first = byte(i);
    const std::size_t length = first < 0x80                    ? 1
                               : first >= 0xc2 && first < 0xe0 ? 2
                               : first >> 4 == 0xe             ? 3
                               : first >= 0xf0 && first < 0xf5 ? 4
                                                               : 0;
    if (length == 0 || text.size() - i < length) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if (byte(i + k) >> 6 != 2) return false;
    }
    // Overlong forms, surrogates, and what is above U+10FFFF.
    if (length == 3 && ((first == 0xe0 && byte(i + 1) < 0xa0) || (first == 0xed && byte(i + 1) >= 0xa0))) return false;
    if (length == 4 && ((first == 0xf0 && byte(i + 1) < 0x90) || (first == 0xf4 && byte(i + 1) >= 0x90))) return false;
    i += length;
  }
  return true;
}

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    while (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string_view> wordsOf(std::string_view line) {
  constexpr std::string_view blanks = " \t\r\v\f";
  std::vector<std::string_view> words;
  for (std::size_t begin = line.find_first_not_of(blanks); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(blanks, end);
  }
  return words;
}

}  // namespace tacc
