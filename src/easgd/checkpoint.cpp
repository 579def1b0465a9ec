#include "easgd/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/error.hpp"
#include "easgd/modes.hpp"
#include "transports/file_descriptor.hpp"

namespace tacc {
namespace {

using Checksum = std::array<std::byte, 32>;

[[noreturn]] void failSystem(const char* what, const std::string& path) {
  fail(taccSystemError, "cannot {} \"{}\": {}", what, path, std::strerror(errno));
}

/// Where symbolic links at `path` lead, whether a file is there or not: such that the kernel follows.
std::string followLinks(const std::string& path) {
  constexpr int mostLinks = 40;  // as the kernel follows
  std::filesystem::path place = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(place, error); ++links) {
    if (links == mostLinks) {
      errno = ELOOP;
      failSystem("follow the links of", path);
    }
    place = place.parent_path() / std::filesystem::read_symlink(place, error);
  }
  return place.string();
}

/// The permissions of what is there, if anything is. A new file takes its place, and must not take that of a device, a
/// pipe or a folder.
std::optional<mode_t> checkPlace(const std::string& path) {
  if (path.empty()) fail(taccInvalidArgument, "path is empty; it must be that of a file");
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) failSystem("reach", path);  // a link too that the kernel does not let this user follow
    return std::nullopt;
  }
  if (!S_ISREG(status.st_mode))
    fail(taccInvalidArgument, "\"{}\" is no regular file; a state takes the place of nothing else", path);
  return status.st_mode & 0777;
}

/// Bytes of a file in their order, and the checksum of them.
class SummedFile {
 public:
  /// `mode`: of a new file, less the process's mask.
  SummedFile(const std::string& path, int flags, const char* what, mode_t mode = 0)
      : path_(path), file_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (!file_.valid()) failSystem(what, path);
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode))
      fail(taccInvalidArgument, "\"{}\" is no regular file", path);
    crypto_generichash_init(&state_, nullptr, 0, sizeof(Checksum));
  }

  /// What the mask took from its permissions, where the file system has them.
  void permit(mode_t mode) { (void)::fchmod(file_.get(), mode); }
  void write(const void* data, std::size_t bytes) {
    sum(data, bytes);
    writePlain(data, bytes);
  }
  void writeChecksum() {
    const Checksum checksum = finish();
    writePlain(checksum.data(), checksum.size());
    if (::fsync(file_.get()) != 0) failSystem("write", path_);
  }
  void read(void* data, std::size_t bytes) {
    readPlain(data, bytes);
    sum(data, bytes);
  }
  bool checksumIsRight() {
    Checksum stored;
    readPlain(stored.data(), stored.size());
    return stored == finish();
  }
  std::size_t size() const {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) failSystem("read", path_);
    return static_cast<std::size_t>(status.st_size);
  }

 private:
  void sum(const void* data, std::size_t bytes) {
    crypto_generichash_update(&state_, static_cast<const unsigned char*>(data), bytes);
  }
  Checksum finish() {
    Checksum checksum;
    crypto_generichash_final(&state_, reinterpret_cast<unsigned char*>(checksum.data()), checksum.size());
    return checksum;
  }
  void writePlain(const void* data, std::size_t bytes) {
    for (const auto* from = static_cast<const std::byte*>(data); bytes > 0;) {
      const ssize_t n = ::write(file_.get(), from, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failSystem("write", path_);
      from += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  void readPlain(void* data, std::size_t bytes) {
    for (auto* to = static_cast<std::byte*>(data); bytes > 0;) {
      const ssize_t n = ::read(file_.get(), to, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failSystem("read", path_);
      if (n == 0) fail(taccInvalidArgument, "\"{}\" ends early: it was cut off", path_);
      to += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }

  std::string path_;
  FileDescriptor file_;
  crypto_generichash_state state_;
};

std::string modeName(std::int32_t mode) {
  if (mode < 0 || mode >= taccEasgdNumModes) return "of an unknown number";
  return std::string(easgdMode(static_cast<taccEasgdMode_t>(mode)).name);
}

void checkHeader(const std::string& path, const CheckpointHeader& found, const CheckpointHeader& expected,
                 std::size_t parts) {
  const auto refuse = [&](const std::string& what) {
    fail(taccInvalidArgument, "\"{}\" does not belong here: {}", path, what);
  };
  if (found.magic != checkpointMagic) refuse("it is no state of an EASGD that tacc saved on this kind of machine");
  if (found.mode != expected.mode)
    refuse(fmt::format("it is of mode {}, and this is mode {}", modeName(found.mode), modeName(expected.mode)));
  if (found.ranks != expected.ranks || found.rank != expected.rank)
    refuse(fmt::format("it is of rank {} of {}, and this is rank {} of {}", found.rank, found.ranks, expected.rank,
                       expected.ranks));
  if (found.count != expected.count)
    refuse(fmt::format("it has {} weights, and this model has {}", found.count, expected.count));
  if (found.parts != parts) refuse(fmt::format("it has {} parts instead of {}", found.parts, parts));
}

}  // namespace

void writeCheckpoint(const std::string& given, CheckpointHeader header, const std::vector<std::span<float>>& parts) {
  const std::optional<mode_t> mode = checkPlace(given);
  const std::string path = followLinks(given);
  const std::string beside = fmt::format("{}.{}.new", path, ::getpid());
  header.parts = parts.size();
  try {
    ::unlink(beside.c_str());  // of a process of that number that ended meanwhile
    constexpr mode_t ofNew = 0666;
    SummedFile file(beside, O_WRONLY | O_CREAT | O_EXCL, "create", mode.value_or(ofNew));
    if (mode) file.permit(*mode);
    file.write(&header, sizeof header);
    for (const std::span<float>& part : parts) {
      const std::uint64_t length = part.size();
      file.write(&length, sizeof length);
    }
    for (const std::span<float>& part : parts) file.write(part.data(), part.size_bytes());
    file.writeChecksum();
    if (::rename(beside.c_str(), path.c_str()) != 0) failSystem("rename the new file to", path);
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
  // The name is on the disk when its folder is.
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const FileDescriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.valid()) ::fsync(opened.get());
}

Checkpoint::Checkpoint(const std::string& path, const CheckpointHeader& expected,
                       const std::vector<std::span<float>>& parts) {
  SummedFile file(path, O_RDONLY | O_NONBLOCK, "open");  // which would wait for the writer of a pipe
  file.read(&header_, sizeof header_);
  checkHeader(path, header_, expected, parts.size());
  std::size_t bytes = sizeof header_ + parts.size() * sizeof(std::uint64_t) + sizeof(Checksum);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::uint64_t length = 0;
    file.read(&length, sizeof length);
    if (length != parts[i].size())
      fail(taccInvalidArgument,
           "\"{}\" does not belong here: its part {} has {} numbers instead of {}, as with another momentum", path, i,
           length, parts[i].size());
    bytes += parts[i].size_bytes();
  }
  if (file.size() != bytes)
    fail(taccInvalidArgument, "\"{}\" has {} bytes instead of {}: it is damaged", path, file.size(), bytes);
  for (const std::span<float>& part : parts) {
    parts_.emplace_back(part.size());
    file.read(parts_.back().data(), part.size_bytes());
  }
  if (!file.checksumIsRight()) fail(taccInvalidArgument, "\"{}\" is damaged: its checksum is wrong", path);
}

void Checkpoint::copyTo(const std::vector<std::span<float>>& parts) const noexcept {
  for (std::size_t i = 0; i < parts.size(); ++i) std::ranges::copy(parts_[i], parts[i].data());
}

}  // namespace tacc
