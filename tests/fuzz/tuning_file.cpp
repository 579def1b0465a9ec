// Files of tacc_tune: each is an Error, or loads to what saves and loads as the same.
#include "selection/tuning/tuning_file.hpp"

#include "fuzz/target.hpp"
#include "selection/tuning/tuning.hpp"

namespace tacc::fuzz {

std::vector<Bytes> seeds() {
  Tuning hosts;
  hosts.place = {ownVersion(), "tcp", 0x0123456789abcdef, false, std::vector<int>(8, 2), {60.5e-6, 23.5e6}};
  hosts.add(Collective::allReduce, {1 << 20, "ring", 86e-3, "double_tree", 88e-3, "ring", 86e-3});
  hosts.add(Collective::allReduce, {8, "knomial_4", 200e-6, "binomial", 205.25e-6, "recursive_doubling", 300e-6});
  hosts.add(Collective::allToAll, {64, "oneshot", 5e-4, "", 0, "oneshot", 5e-4});
  Tuning node;
  node.place = {ownVersion(), "shm", 0, true, {4}, {0, 1e9}};
  node.add(Collective::broadcast, {64, "eager", 5e-7, "", 0, "", 0});
  Tuning uneven = hosts;
  uneven.place.ranksOfHost = {1, 2, 3};
  uneven.collectives.clear();
  return {bytesOf(tuningToToml(hosts)), bytesOf(tuningToToml(node)), bytesOf(tuningToToml(uneven))};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tacc;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Tuning tuning;
  try {
    tuning = tuningFromToml(text, "fuzz");
  } catch (const Error& error) {
    fuzz::require(*error.what() != '\0', "an Error without a word");
    return 0;
  }
  for (std::size_t bytes = 1; bytes < std::size_t{1} << 40; bytes *= 8) (void)tuning.find(Collective::allReduce, bytes);
  try {
    const std::string saved = tuningToToml(tuning);
    fuzz::require(tuningToToml(tuningFromToml(saved, "again")) == saved, "what was saved loads as something else");
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    fuzz::require(false, "what was saved does not load");
  }
  return 0;
}
