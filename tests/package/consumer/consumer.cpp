// Two ranks as threads, which sum 1000 numbers.
#include <tacc/tacc.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

/// Whether the allreduce of this rank, `rank` + 1 in every place, has the sum of both.
bool sums(taccComm_t comm, int rank) {
  std::vector<float> numbers(1000, static_cast<float>(rank + 1));
  if (taccAllReduce(numbers.data(), numbers.data(), numbers.size(), taccFloat, taccSum, comm, nullptr) != taccSuccess) {
    std::fprintf(stderr, "rank %d: %s\n", rank, taccGetLastError(comm));
    return false;
  }
  return std::all_of(numbers.begin(), numbers.end(), [](float number) { return number == 3.0f; });
}

}  // namespace

int main() {
  taccComm_t comms[2];
  if (taccCommInitAll(comms, 2, nullptr) != taccSuccess) {
    std::fprintf(stderr, "%s\n", taccGetLastError(nullptr));
    return 1;
  }
  bool right[2] = {};
  std::thread other([&] { right[1] = sums(comms[1], 1); });
  right[0] = sums(comms[0], 0);
  other.join();
  for (taccComm_t comm : comms) taccCommDestroy(comm);
  if (!right[0] || !right[1]) return 1;
  std::puts("each of 2 ranks has the sum 3 in all 1000 places");
}
