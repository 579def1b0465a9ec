// How long the gradients of ResNet-50 take, in buckets of several sizes and tensor by tensor, on any launcher's ranks.
//
//   cluster run --cluster 2,4,200,200 -- build/bench/bucket_times --backward 2 --steps 3
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tacc/tacc.h"

namespace {

using Clock = std::chrono::steady_clock;

void check(taccResult_t result) {
  if (result != taccSuccess) throw std::runtime_error(taccGetLastError(nullptr));
}

/// Elements of the 161 tensors, in backward order: the classifier first. A convolution's weights, and scale and shift
/// of its normalization.
std::vector<std::size_t> resnet50() {
  std::vector<std::size_t> forward;
  const auto convolution = [&](std::size_t in, std::size_t out, std::size_t window) {
    forward.insert(forward.end(), {in * out * window * window, out, out});
  };
  convolution(3, 64, 7);
  std::size_t channels = 64;
  const std::size_t blocks[] = {3, 4, 6, 3};
  for (std::size_t stage = 0, width = 64; stage < 4; ++stage, width *= 2)
    for (std::size_t block = 0; block < blocks[stage]; ++block) {
      convolution(channels, width, 1);
      convolution(width, width, 3);
      convolution(width, 4 * width, 1);
      if (block == 0) convolution(channels, 4 * width, 1);
      channels = 4 * width;
    }
  forward.insert(forward.end(), {channels * 1000, 1000});
  std::ranges::reverse(forward);
  return forward;
}

/// How the tensors are reduced: in buckets of that many bytes.
struct Packing {
  const char* name;
  std::size_t bucketBytes;  // 0: chosen
};
constexpr Packing packings[] = {
    {"every tensor by itself", 1}, {"buckets of 64 MiB", std::size_t{64} << 20}, {"chosen", 0}};

double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

class Model {
 public:
  explicit Model(taccComm_t comm, double backward) : comm_(comm), sizes_(resnet50()), backward_(backward) {
    for (const std::size_t size : sizes_) {
      gradients_.emplace_back(size, 1.0F);
      elements_ += size;
    }
  }
  std::size_t bytes() const { return elements_ * sizeof(float); }
  std::size_t tensors() const { return sizes_.size(); }

  /// Seconds of a step: tensors become ready during `backward` seconds, evenly by their bytes.
  double step(taccBucket_t bucket, taccStream_t stream) {
    for (std::vector<float>& gradient : gradients_) std::ranges::fill(gradient, 1.0F);
    check(taccBarrier(comm_, nullptr));
    const Clock::time_point start = Clock::now();
    std::size_t ready = 0;
    for (std::vector<float>& gradient : gradients_) {
      ready += gradient.size();
      const double at = backward_ * static_cast<double>(ready) / static_cast<double>(elements_);
      std::this_thread::sleep_until(start +
                                    std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(at)));
      check(taccBucketAdd(bucket, gradient.data(), gradient.size(), taccFloat, taccSum));
    }
    check(taccBucketFlush(bucket));
    check(taccStreamSynchronize(stream));
    return seconds(start);
  }
  bool isRight(int ranks) const {
    return std::ranges::all_of(gradients_, [ranks](const std::vector<float>& gradient) {
      return std::ranges::all_of(gradient, [ranks](float value) { return value == static_cast<float>(ranks); });
    });
  }

 private:
  taccComm_t comm_;
  std::vector<std::size_t> sizes_;
  std::vector<std::vector<float>> gradients_;
  std::size_t elements_ = 0;
  double backward_;
};

bool run(double backward, int steps) {
  taccComm_t comm;
  taccStream_t stream;
  int rank = 0, ranks = 0;
  check(taccCommInitEnv(&comm, nullptr));
  check(taccStreamCreate(&stream));
  check(taccCommUserRank(comm, &rank));
  check(taccCommCount(comm, &ranks));
  Model model(comm, backward);
  if (rank == 0)
    fmt::print("{} tensors, {} bytes, {} ranks, computing {} s\n", model.tensors(), model.bytes(), ranks, backward);
  bool right = true;
  for (const Packing& packing : packings) {
    taccBucket_t bucket;
    check(taccBucketCreate(&bucket, comm, stream, packing.bucketBytes));
    std::vector<double> times;
    for (int step = 0; step <= steps; ++step) {
      times.push_back(model.step(bucket, stream));
      right = right && model.isRight(ranks);
    }
    times.erase(times.begin());  // the first one pays for memory and connections
    std::ranges::sort(times);
    std::size_t bytes = 0;
    check(taccBucketBytes(bucket, &bytes));
    if (rank == 0)
      fmt::print("{:24} {:8} KiB a bucket: {:9.1f} ms a step (least {:.1f})\n", packing.name, bytes / 1024,
                 times[times.size() / 2] * 1e3, times.front() * 1e3);
    std::fflush(stdout);
    check(taccBucketDestroy(bucket));
  }
  check(taccStreamDestroy(stream));
  check(taccCommDestroy(comm));
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  double backward = 1;
  int steps = 3;
  CLI::App app(
      "Times the allreduces of ResNet-50's gradients. Started once a rank, by tools/cluster run or any launcher.");
  app.add_option("--backward", backward, "seconds in which the gradients become ready");
  app.add_option("--steps", steps, "how many, besides a first one")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    if (run(backward, steps)) return 0;
    std::fprintf(stderr, "bucket_times: wrong sums\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bucket_times: %s\n", error.what());
  }
  return 1;
}
