// Plans as text: each is an Error, or a verified plan that prints and loads as the same.
#include "algorithms/registry.hpp"
#include "algorithms/text.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> corpus;
  for (const Algorithm& algorithm : algorithms())
    for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::allToAll}) {
      const PlanRequest request{collective, 3, 0};
      if (algorithm.serves(request)) corpus.push_back(bytesOf(toText(makePlan(algorithm, request))));
    }
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tacc;
  return fuzz::mayRefuse([&] {
    const Plan plan = fromText({reinterpret_cast<const char*>(data), size});
    const std::string text = toText(plan);
    fuzz::require(toText(fromText(text)) == text, "what was printed loads as something else");
  });
}
