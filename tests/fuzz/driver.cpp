// Runs a target. By itself: its seeds, then mutations of them from a fixed seed:
//
//   TARGET                       for a second, as a test
//   TARGET MUTATIONS [SEED]      so many
//   TARGET FILE...               the inputs in these files, such as one that libFuzzer wrote
//
// With TACC_FUZZ_ENGINE, main() is libFuzzer's, and FUZZ_SEEDS=DIR writes the seeds there and ends.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "fuzz/target.hpp"

namespace tacc::fuzz {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

#ifndef TACC_FUZZ_ENGINE

namespace {

constexpr std::size_t longest = std::size_t{1} << 16;
constexpr auto testTime = std::chrono::seconds(1);

unsigned long currentMutation = 0, currentSeed = 1;

/// Which input it was; only what a signal handler may call.
void tellWhere(int number) {
  std::array<char, 128> text;
  const int length = std::snprintf(text.data(), text.size(), "fuzz: signal %d in mutation %lu of seed %lu\n", number,
                                   currentMutation, currentSeed);
  (void)!::write(2, text.data(), static_cast<std::size_t>(length));
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void run(const Bytes& bytes) {
  // A buffer of its own: sanitizers then see every byte that is read behind it.
  const Bytes exact(bytes.begin(), bytes.end());
  (void)LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

/// One to four changes of the kinds that break parsers.
Bytes mutate(Bytes bytes, const std::vector<Bytes>& corpus, std::mt19937& random) {
  constexpr std::array<std::uint64_t, 10> special = {0,          1,          0x7f,       0xff,       0x100,
                                                     0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 40, ~0ULL};
  const auto below = [&](std::size_t end) { return end == 0 ? 0 : random() % end; };
  const auto at = [&](std::size_t place) { return bytes.begin() + static_cast<std::ptrdiff_t>(place); };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t place = below(bytes.size());
    const std::size_t end = std::min(bytes.size(), place + 1 + below(32));
    switch (below(8)) {
      case 0:
        if (!bytes.empty()) bytes[place] = static_cast<std::uint8_t>(bytes[place] ^ (1U << below(8)));
        break;
      case 1:
        if (!bytes.empty()) bytes[place] = static_cast<std::uint8_t>(random());
        break;
      case 2: {
        const std::uint64_t value = special[below(special.size())];
        std::memcpy(bytes.data() + place, &value, std::min(std::size_t{1} << below(4), bytes.size() - place));
        break;
      }
      case 3:
        bytes.erase(at(place), at(end));
        break;
      case 4: {
        const Bytes piece(at(place), at(end));
        bytes.insert(at(below(bytes.size())), piece.begin(), piece.end());
        break;
      }
      case 5:
        bytes.insert(at(place), static_cast<std::uint8_t>(random()));
        break;
      case 6:
        bytes.resize(place);
        break;
      default: {  // goes on as another seed does
        const Bytes& other = corpus[below(corpus.size())];
        bytes.resize(place);
        bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(below(other.size())), other.end());
      }
    }
    if (bytes.size() > longest) bytes.resize(longest);
  }
  return bytes;
}

int runMutations(unsigned long mutations, std::chrono::nanoseconds time) {
  const std::vector<Bytes> corpus = seeds();
  for (const Bytes& bytes : corpus) run(bytes);
  std::mt19937 random(static_cast<std::uint32_t>(currentSeed));
  // Not the steady clock, which a target may have to itself (memory_calls.cpp).
  const auto end = std::chrono::system_clock::now() + time;
  while (currentMutation < mutations && std::chrono::system_clock::now() < end) {
    ++currentMutation;
    Bytes bytes = mutate(corpus[currentMutation % corpus.size()], corpus, random);
    if (currentMutation % 4 == 0) bytes = mutate(std::move(bytes), corpus, random);
    run(bytes);
  }
  fmt::print("{} seeds and {} mutations of seed {}: no crash\n", corpus.size(), currentMutation, currentSeed);
  return 0;
}

}  // namespace

#endif

}  // namespace tacc::fuzz

#ifdef TACC_FUZZ_ENGINE

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* directory = std::getenv("FUZZ_SEEDS");
  if (directory == nullptr) return 0;
  int number = 0;
  for (const tacc::fuzz::Bytes& seed : tacc::fuzz::seeds()) {
    std::ofstream file(fmt::format("{}/seed{:03}", directory, number++), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
  }
  std::exit(0);
}

#else

int main(int argc, char** argv) {
  using namespace tacc::fuzz;
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(number, tellWhere);
  const std::string first = argc > 1 ? argv[1] : "";
  const bool isNumber = first.find_first_not_of("0123456789") == std::string::npos;
  if (argc > 2 && isNumber) currentSeed = std::stoul(argv[2]);
  if (isNumber)
    return first.empty() ? runMutations(~0UL, testTime) : runMutations(std::stoul(first), std::chrono::hours(1000));
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    require(file.good(), "no such file");
    run(Bytes(std::istreambuf_iterator<char>(file), {}));
  }
  fmt::print("{} files: no crash\n", argc - 1);
  return 0;
}

#endif
