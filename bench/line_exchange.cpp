// The bound of the smallest calls between two ranks of a host: each writes one cache line and waits for the other's,
// with nothing else between. tacc's call lines add what makes a call of it: the signature, the history, the sum, the
// result.
//
//   build/bench/line_exchange; build/bench/tacc_bench allreduce --size 8 -n 20000
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::uint32_t slots = 16;  // as many as tacc has call lines, so that nobody writes what is still read
constexpr std::uint32_t exchanges = 200'000;
constexpr int repetitions = 5;

struct alignas(64) Line {
  std::atomic<std::uint32_t> sequence;
  float payload;
};

struct Shared {
  std::array<std::array<Line, slots>, 2> lines;
};

/// The first two processors that this process may use; false if there is one only.
bool findProcessors(std::array<int, 2>& processors) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  std::size_t found = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; ++cpu)
    if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) processors[found++] = cpu;
  return found == 2;
}

void bindTo(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(processor), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

/// Microseconds of an exchange: the median of the repetitions.
double measure(Shared& shared, std::size_t rank) {
  std::vector<double> times;
  std::uint32_t call = 0;
  float sum = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < exchanges; ++i) {
      ++call;
      Line& mine = shared.lines[rank][call % slots];
      const Line& theirs = shared.lines[1 - rank][call % slots];
      mine.payload = sum == 0 ? 1.0F : 2.0F;  // the next exchange needs the sum of this one, as in a program
      mine.sequence.store(call, std::memory_order_release);
      while (theirs.sequence.load(std::memory_order_acquire) != call) {
      }
      sum = mine.payload + theirs.payload;
    }
    const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - start;
    times.push_back(passed.count() / exchanges);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main() {
  std::array<int, 2> processors{};
  if (!findProcessors(processors)) {
    std::fprintf(stderr, "line_exchange: needs two processors\n");
    return 1;
  }
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("line_exchange: cannot map memory");
    return 1;
  }
  auto& shared = *static_cast<Shared*>(memory);  // zeros, which are valid lines that nobody waits for
  const pid_t child = ::fork();
  if (child < 0) {
    std::perror("line_exchange: cannot fork");
    return 1;
  }
  const std::size_t rank = child == 0 ? 1 : 0;
  bindTo(processors[rank]);
  const double time = measure(shared, rank);
  if (rank == 1) return 0;
  ::waitpid(child, nullptr, 0);
  std::printf("one line each way between processors %d and %d: %.3f us\n", processors[0], processors[1], time);
  return 0;
}
