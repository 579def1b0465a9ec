// center_speed: how many exchanges with a center workers make in a second. Not a test: look at what it prints.
//
//   center_speed BYTES WORKERS [mapped|hogwild|unix|tcp]     on this host
//   center_speed BYTES WORKERS hosts MBIT                    on virtual hosts with links of so many Mbit/s, a worker on
//                                                            each, the center on another (VIRTUAL_CLUSTER_TOOL)
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "center_team.hpp"
#include "easgd/center.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

constexpr double measuredSeconds = 2;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Exchanges in a second, and half of them faster than so many seconds.
struct Speed {
  double rate;
  double median;
};

Speed measure(Center& center) {
  std::vector<float> weights(center.size(), 1.0f);
  std::vector<double> times;
  exchange(center, weights, 0.5f);
  const double start = now();
  for (double last = start; last < start + measuredSeconds;) {
    exchange(center, weights, 0.5f);
    const double end = now();
    times.push_back(end - last);
    last = end;
  }
  const double seconds = now() - start;
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return {static_cast<double>(times.size()) / seconds, times[times.size() / 2]};
}

int run(std::size_t bytes, int workers, const std::string& route, int mbit) {
  const bool onHosts = route == "hosts";
  std::unique_ptr<VirtualCluster> cluster;
  if (onHosts) cluster = std::make_unique<VirtualCluster>(1, workers + 1, mbit);
  const std::size_t count = std::max<std::size_t>(1, bytes / sizeof(float));
  const Keeper keeper(count, {.isLocked = route != "hogwild"}, [&] {
    if (onHosts) cluster->enter(1);
  });
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  std::vector<ChildProcess> processes;
  for (int w = 0; w < workers; ++w)
    processes.push_back(startWorker([&, w] {
      if (onHosts) cluster->enter(w + 2);
      const Route how = route == "unix" ? Route::unixSocket : route == "tcp" ? Route::tcp : Route::mapped;
      const auto center = onHosts ? connectCenter(keeper.id(), count, {}) : connectBy(how, keeper.id(), count);
      const Speed speed = measure(*center);
      return ::write(ends[1], &speed, sizeof speed) == sizeof speed;
    }));
  double rate = 0;
  for (int w = 0; w < workers; ++w) {
    Speed speed{};
    if (::read(ends[0], &speed, sizeof speed) != sizeof speed) return 1;
    fmt::print("worker: {:.0f} exchanges/s, median {:.1f} us\n", speed.rate, 1e6 * speed.median);
    rate += speed.rate;
  }
  fmt::print("{} workers, {} bytes, {}: {:.0f} exchanges/s, {:.1f} MB/s each way\n", workers, bytes, route, rate,
             1e-6 * rate * static_cast<double>(count * sizeof(float)));
  if (onHosts) {
    const double link = 1e6 * mbit / 8;
    fmt::print("{:.1f} % of the link of {} Mbit/s at the center\n",
               100 * rate * static_cast<double>(count * sizeof(float)) / link, mbit);
  }
  return 0;
}

}  // namespace
}  // namespace tacc::test

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print("usage: center_speed BYTES WORKERS [mapped|hogwild|unix|tcp | hosts MBIT]\n");
    return 2;
  }
  return tacc::test::run(std::stoul(argv[1]), std::stoi(argv[2]), argc > 3 ? argv[3] : "mapped",
                         argc > 4 ? std::stoi(argv[4]) : 200);
}
