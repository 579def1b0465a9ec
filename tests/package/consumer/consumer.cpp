// Two ranks as threads, which sum 1000 numbers.
#include <algorithm>
#include <cstdio>
#include <tacc/tacc.hpp>
#include <thread>
#include <vector>

namespace {

/// Whether the allreduce of this rank, `rank` + 1 in every place, has the sum of both.
bool sums(const taccxx::Communicator& comm) {
  try {
    std::vector<float> numbers(1000, static_cast<float>(comm.rank() + 1));
    comm.allReduce(numbers);
    return std::all_of(numbers.begin(), numbers.end(), [](float number) { return number == 3.0f; });
  } catch (const taccxx::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return false;
  }
}

}  // namespace

int main() {
  const std::vector<taccxx::Communicator> comms = taccxx::Communicator::initAll(2);
  bool right[2] = {};
  std::thread other([&] { right[1] = sums(comms[1]); });
  right[0] = sums(comms[0]);
  other.join();
  if (!right[0] || !right[1]) return 1;
  std::puts("each of 2 ranks has the sum 3 in all 1000 places");
}
