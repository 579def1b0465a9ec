#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tacc::tools {

/// "8", "4K", "100M", "1G": bytes, binary units. Throws std::invalid_argument with a sentence.
size_t parseSize(const std::string& text);

/// "8 B", "4 KiB", "100 MiB": the shortest exact or nearly exact form.
std::string formatSize(size_t bytes);

/// Elements of a rank's part of `elements`: like nccl-tests rounded down to 16 bytes, but not below 16 bytes, nor below
/// one element, as far as there are any.
size_t partOf(size_t elements, size_t elementSize, int ranks);

/// The sizes of a run: from first to last, multiplied by `factor` if that is above 1, else increased by `step`.
struct SizeRange {
  size_t first = 8;
  size_t last = size_t{128} << 20;
  size_t factor = 2;
  size_t step = 0;

  std::vector<size_t> list() const;
};

}  // namespace tacc::tools
