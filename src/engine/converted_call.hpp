// Calls whose inputs are made or changed before they are summed: in memory that the communicator keeps.
#pragma once

#include <cstddef>

#include "compute/reduce/reduce.hpp"
#include "core/call.hpp"
#include "core/types.hpp"
#include "engine/call_shape.hpp"
#include "engine/kept_memory.hpp"
#include "engine/streamed_sum.hpp"

namespace tacc {

/// What such calls work in: a multiplied one may be widened too.
struct ConversionMemory {
  KeptMemory products, floats, made;
};

/// Runs, by `run(call)`, the sum of inputs that each rank has multiplied by its factor. `op`: what the sum is called.
template <class Run>
void runMultiplied(const Call& call, int rank, int ranks, taccRedOp_t op, ConversionMemory& memory, const Run& run) {
  const std::size_t bytes = usedBuffers(call, rank, ranks).sendBytes;
  const Trimmed products(memory.products);
  std::byte* const product = memory.products.atLeast(bytes);
  multiplyByScalar(call.type, product, call.send, call.factor, bytes / sizeOf(call.type));
  Call sum = call;
  sum.factor = nullptr;
  sum.op = op;
  sum.send = product;
  run(sum);
}

/// Runs the reduction of a 16-bit type in float, for algorithms that would round its sums more than once.
template <class Run>
void runWidened(const Call& call, int rank, int ranks, ConversionMemory& memory, const Run& run) {
  const UserBuffers mine = usedBuffers(call, rank, ranks);
  const std::size_t inputs = mine.sendBytes / sizeOf(call.type);
  const std::size_t outputs = mine.receiveBytes / sizeOf(call.type);
  const Trimmed floats(memory.floats);
  auto* const wide = reinterpret_cast<float*>(memory.floats.atLeast((inputs + outputs) * sizeof(float)));
  widenToFloat(call.type, wide, call.send, inputs);
  Call sum = call;
  sum.type = taccFloat32;
  sum.send = wide;
  sum.receive = wide + inputs;
  run(sum);
  if (mine.receive != nullptr) narrowFromFloat(call.type, mine.receive, wide + inputs, outputs);
}

/// Runs a streamed sum whose numbers are all made before the first are summed.
template <class Run>
void runMadeFirst(const Call& call, ConversionMemory& memory, const Run& run) {
  const Trimmed made(memory.made);
  std::byte* const numbers = memory.made.atLeast(call.count * sizeOf(call.type));
  if (call.count > 0) call.streamed->make(0, call.count, numbers);
  Call sum = call;
  sum.streamed = nullptr;
  sum.send = sum.receive = numbers;
  run(sum);
  if (call.count > 0) call.streamed->take(0, call.count, numbers);
}

}  // namespace tacc
