// The file in which a rank keeps the state of its training.
//
//   header     CheckpointHeader
//   lengths    one 64-bit number for each part
//   parts      float32: weights, velocity, then what the mode keeps
//   checksum   32 bytes, BLAKE2b of all before
//
// In the byte order of the machine; another one's is refused by the magic number.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tacc {

inline constexpr std::uint64_t checkpointMagic = 0x3144'4753'4145'6363ULL;

struct CheckpointHeader {
  std::uint64_t magic = checkpointMagic;
  std::int32_t mode = 0;
  std::int32_t rank = 0, ranks = 0;
  std::int32_t hasBegun = 0;  // an exchange whose center has moved, and whose weights have not
  std::uint64_t count = 0;
  std::uint64_t steps = 0, exchanges = 0;
  std::uint64_t parts = 0;
};

/// Writes a file beside `given`, makes sure that it is on the disk, and gives it that name, and the permissions of the
/// file that has it. A symbolic link stays: what it leads to is replaced.
void writeCheckpoint(const std::string& given, CheckpointHeader header, const std::vector<std::span<float>>& parts);

class Checkpoint {
 public:
  /// Reads the whole file. Fails, naming it and what is wrong, where it is damaged, or not of `expected`'s mode, rank,
  /// ranks and count, or where its parts have not these lengths.
  Checkpoint(const std::string& path, const CheckpointHeader& expected, const std::vector<std::span<float>>& parts);

  const CheckpointHeader& header() const noexcept { return header_; }
  void copyTo(const std::vector<std::span<float>>& parts) const noexcept;

 private:
  CheckpointHeader header_;
  std::vector<std::vector<float>> parts_;
};

}  // namespace tacc
