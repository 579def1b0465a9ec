// What the programs that run under mpiexec share: draws that all ranks make alike, and complaints.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

// For operations of the program that MPI calls: in any thread that is in MPI, which may be another one than that whose
// numbers they are. ThreadSanitizer does not see how an MPI that is not compiled with it hands them over.
#define CALLED_BY_MPI __attribute__((no_sanitize("thread")))

namespace tacc::test {

/// Tells what is wrong and ends the job: the others would wait.
[[noreturn]] inline void complain(const std::string& what) {
  int rank = -1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "FAILED on rank %d of the world: %s\n", rank, what.c_str());
  PMPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/// The same on all ranks that made the same draws before.
class Draws {
 public:
  explicit Draws(unsigned seed) : engine_(seed) {}
  /// From 0 to `most`.
  int upTo(int most) { return static_cast<int>(engine_() % (static_cast<unsigned>(most) + 1)); }
  /// 0, 1, a few, a few thousands, and rarely up to 100,000.
  int count() {
    switch (upTo(9)) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return 2 * upTo(20000) + 1;
      case 3:
        return upTo(5) == 0 ? upTo(100000) : upTo(3000);
      default:
        return upTo(200);
    }
  }

 private:
  std::mt19937 engine_;
};

/// Memory at an address that is `shift` bytes off every alignment.
class Memory {
 public:
  Memory(std::size_t bytes, int shift)
      : storage_(bytes + 64 + static_cast<std::size_t>(shift)),
        shift_(static_cast<std::size_t>(shift)),
        bytes_(bytes) {}
  std::byte* data() { return storage_.data() + shift_; }
  std::size_t size() const { return bytes_; }
  /// With a few bytes behind it, which nobody may write.
  std::vector<std::byte> contents() const {
    const auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(shift_);
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes_) + 16};
  }

 private:
  std::vector<std::byte> storage_;
  std::size_t shift_, bytes_;
};

}  // namespace tacc::test
