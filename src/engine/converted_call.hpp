// Calls whose inputs are made or changed before they are summed: through a workspace of the call's own.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/reduce/reduce.hpp"
#include "core/call.hpp"
#include "core/types.hpp"
#include "engine/call_shape.hpp"
#include "engine/streamed_sum.hpp"

namespace tacc {

/// Runs, by `run(call)`, the sum of inputs that each rank has multiplied by its factor. `op`: what the sum is called.
template <class Run>
void runMultiplied(const Call& call, int rank, int ranks, taccRedOp_t op, const Run& run) {
  const std::size_t elements = usedBuffers(call, rank, ranks).sendBytes / sizeOf(call.type);
  std::vector<std::byte> product(elements * sizeOf(call.type));
  multiplyByScalar(call.type, product.data(), call.send, call.factor, elements);
  Call sum = call;
  sum.factor = nullptr;
  sum.op = op;
  sum.send = product.data();
  run(sum);
}

/// Runs the reduction of a 16-bit type in float, for algorithms that would round its sums more than once.
template <class Run>
void runWidened(const Call& call, int rank, int ranks, const Run& run) {
  const UserBuffers mine = usedBuffers(call, rank, ranks);
  const std::size_t inputs = mine.sendBytes / sizeOf(call.type);
  const std::size_t outputs = mine.receiveBytes / sizeOf(call.type);
  std::vector<float> wide(inputs + outputs);
  widenToFloat(call.type, wide.data(), call.send, inputs);
  Call sum = call;
  sum.type = taccFloat32;
  sum.send = wide.data();
  sum.receive = wide.data() + inputs;
  run(sum);
  if (mine.receive != nullptr) narrowFromFloat(call.type, mine.receive, wide.data() + inputs, outputs);
}

/// Runs a streamed sum whose numbers are all made before the first are summed.
template <class Run>
void runMadeFirst(const Call& call, const Run& run) {
  std::vector<std::byte> numbers(call.count * sizeOf(call.type));
  if (call.count > 0) call.streamed->make(0, call.count, numbers.data());
  Call sum = call;
  sum.streamed = nullptr;
  sum.send = sum.receive = numbers.data();
  run(sum);
  if (call.count > 0) call.streamed->take(0, call.count, numbers.data());
}

}  // namespace tacc
