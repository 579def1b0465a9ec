#include "between_pages.hpp"

#include "../guarded_buffer.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

using tacc::test::PageBuffer;

/// A copy of a tensor.
class Placed {
 public:
  Placed(const Floats& content, bool isAtEnd)
      : pages_(content.size() * sizeof(float) / 4096 + 1), at_(pages_.place(content.data(), content.size(), isAtEnd)) {}
  float* data() { return at_; }

 private:
  PageBuffer pages_;
  float* at_;
};

}  // namespace

void expectExactBetweenPages(const taccConvDesc_t& given, int workers, bool isAtEnd) {
  taccConvDesc_t desc = given;
  desc.maxWorkers = workers;
  const Case test(desc);
  const Floats expected = test.expected();
  const ThreadedExecutor threads(workers);
  for (const KernelSet* kernels : availableKernels()) {
    const ChosenPlan chosen = makePlan(test.description(), *kernels);
    const ConvPlan& plan = *chosen.plan;
    Placed input(test.input, isAtEnd), gradient(test.outputGradient, isAtEnd), residual(test.residual, isAtEnd);
    Placed result(test.before, isAtEnd);
    Floats packed(plan.packedFloats()), workspace(plan.workspaceBytes() / sizeof(float));
    std::fill_n(workspace.data(), workspace.size(), 1e30F);
    plan.pack(test.weights.data(), packed.data());
    plan.run({input.data(), packed.data(), gradient.data(), test.bias.data(), residual.data(), result.data(),
              workspace.data(), plan.workspaceBytes()},
             TaskExecutor(threads.get()));
    Floats got(test.before.size());
    std::copy_n(result.data(), got.size(), got.data());
    EXPECT_TRUE(test.isRight(got, expected))
        << test.text() << ": " << chosen.algorithm << " " << plan.kernel() << ", " << workers << " workers";
  }
}

}  // namespace tacc::conv::test
