// Ranges of tags of one communicator of MPI's: which of them this rank's communicators have.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace tacc::mpi {

/// What ranks agree on that look for a range together. Each is collective over them.
struct RangeAgreement {
  std::function<int(int)> most;
  std::function<bool(bool)> all;
  /// Each word becomes that of all ranks, by "or".
  std::function<void(std::vector<std::uint64_t>&)> join;
};

/// Any thread, each with other ranks.
class TagRanges {
 public:
  explicit TagRanges(int ranges = 0) { open(ranges); }
  /// Nobody has any of them.
  void open(int ranges);

  /// One that none of the ranks has; it is theirs until they give it back. Ranges that none of them has ever had come
  /// first. Nothing where all are taken, the same on all ranks. Collective; costs two agreements of a number, and one
  /// of a bit for each range once all have been used.
  std::optional<int> take(const RangeAgreement& ranks);
  /// Of this rank alone: the others may have it still, and nobody takes it before all have given it back.
  void giveBack(int range);

 private:
  std::optional<int> find(const RangeAgreement& ranks);
  bool claim(int range);

  std::mutex mutex_;
  int ranges_ = 0;
  int next_ = 0;                      // the first that this rank has never had
  std::vector<std::uint64_t> taken_;  // a bit for each
};

}  // namespace tacc::mpi
