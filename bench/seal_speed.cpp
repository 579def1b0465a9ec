// seal_speed: how many bytes a core seals or opens in a second, by the size of the record.
//
//   build/bench/seal_speed
#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "transports/tcp/sealed_records.hpp"

namespace {

using namespace tacc;
using Clock = std::chrono::steady_clock;

constexpr std::size_t bytesOfTurn = std::size_t{64} << 20;
constexpr int turns = 5;

struct Speed {
  double seal = 0, open = 0;  // GB/s, the best turn
};

Speed measure(std::size_t textBytes) {
  const Key key = makeNonce();
  Speed speed;
  for (int turn = 0; turn < turns; ++turn) {
    RecordCipher sealer(key), opener(key);
    std::vector<std::byte> record(RecordCipher::headBytes + textBytes + RecordCipher::tagBytes);
    double sealing = 0, opening = 0;
    const std::size_t records = bytesOfTurn / std::max<std::size_t>(textBytes, 256);
    for (std::size_t i = 0; i < records; ++i) {
      const auto start = Clock::now();
      sealer.seal(record);
      const auto middle = Clock::now();
      if (!opener.open(record)) return {};
      opening += std::chrono::duration<double>(Clock::now() - middle).count();
      sealing += std::chrono::duration<double>(middle - start).count();
    }
    const double bytes = static_cast<double>(records * textBytes) * 1e-9;
    speed = {std::max(speed.seal, bytes / sealing), std::max(speed.open, bytes / opening)};
  }
  return speed;
}

}  // namespace

int main() {
  if (::sodium_init() < 0) return 1;
  fmt::print("{:>8} {:>10} {:>10}\n", "bytes", "seal GB/s", "open GB/s");
  for (const std::size_t bytes : {16, 64, 256, 1024, 4096, 16384, 65536}) {
    const Speed speed = measure(bytes);
    fmt::print("{:>8} {:>10.3f} {:>10.3f}\n", bytes, speed.seal, speed.open);
  }
  return 0;
}
