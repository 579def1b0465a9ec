#include "worker/contestant.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <system_error>

namespace tacc::bench {

std::string Contestant::share(const std::string&) { throw std::logic_error("this library shares no words"); }

void* Contestant::allocate(size_t bytes, bool smallPages) {
  constexpr size_t hugePage = size_t{2} << 20;
  void* buffer = nullptr;
  if (const int error = ::posix_memalign(&buffer, hugePage, bytes); error != 0)
    throw std::system_error(error, std::generic_category(), "cannot allocate " + std::to_string(bytes) + " bytes");
  // Advice only: without huge pages all contestants have small ones.
  ::madvise(buffer, bytes, smallPages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  std::memset(buffer, 0, bytes);
  return buffer;
}

void Contestant::release(void* buffer, size_t) { ::free(buffer); }

double Contestant::cpuSeconds() const {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

std::string Contestant::algorithm(const Call&) const { return ""; }

}  // namespace tacc::bench
