#include "same_bits.hpp"

#include "threaded_executor.hpp"

namespace tacc::conv::test {

void expectSameBitsForEveryNumberOfThreads(const taccConvDesc_t& given, int mostWorkers) {
  taccConvDesc_t desc = given;
  desc.maxWorkers = 1;
  Case test(desc);
  for (Floats* floats : {&test.input, &test.weights, &test.outputGradient}) {
    for (std::size_t i = 0; i < floats->size(); ++i) floats->data()[i] *= 0.1F + 0.001F * static_cast<float>(i % 97);
  }
  for (const KernelSet* kernels : availableKernels()) {
    const Floats serial = test.run(*makePlan(test.description(), *kernels).plan, *taccSerialExecutor());
    for (int workers = 2; workers <= mostWorkers; ++workers) {
      desc.maxWorkers = workers;
      const auto plan = makePlan(understand(desc), *kernels).plan;
      EXPECT_TRUE(test.run(*plan, ThreadedExecutor(workers).get()) == serial) << test.text() << ", " << workers;
    }
  }
}

}  // namespace tacc::conv::test
