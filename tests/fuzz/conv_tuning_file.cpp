// Files of measured convolutions: each is an Error or is loaded.
#include "compute/conv/tuning.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {

std::vector<Bytes> seeds() {
  const std::string head = "format = 1\ncpu = \"a processor\"\nisa = \"avx2\"\n";
  const std::string one =
      "[[layer]]\npass = \"forward\"\ninput = [2, 64, 14, 15]\noutput_channels = 32\nkernel = [3, 3]\n"
      "stride = [1, 1]\npad = [1, 1]\ndilation = [1, 1]\ngroups = 1\nlayout = \"nchw16c\"\ntype = \"float32\"\n"
      "winograd = 0\nworkers = 1\nalgorithm = \"reference\"\nmicroseconds = { reference = 1.5, direct = 2 }\n";
  return {bytesOf(head + one), bytesOf(head + one + one), bytesOf(head), bytesOf(one)};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tacc;
  return fuzz::mayRefuse([&] {
    (void)conv::tuningFromToml({reinterpret_cast<const char*>(data), size}, "fuzz", {"a processor", "avx2", false});
  });
}
