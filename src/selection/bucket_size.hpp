// How large the allreduces should be that many small ones are put together to.
#pragma once

#include <cstddef>
#include <functional>

namespace tacc {

/// Bytes. Between ranks of one node a call costs microseconds and copying about as much: only small tensors are packed.
struct BucketSizes {
  std::size_t full = 64 * 1024;  // of a bucket
  std::size_t alone = 8 * 1024;  // a tensor of that size is not packed: copying costs more than a call's latency
};

/// For a step that reduces `stepBytes` in all, while the program computes. `seconds(n)`: what an allreduce of n bytes
/// takes.
///
/// A step with buckets of n bytes has N / n calls of T(n) = A + B n. They run beside the computation, all but the last
/// one, which begins when the computation is over. So n makes (N / n + 1) T(n) the least: for straight lines
/// n = sqrt(N A / B), where the latencies of all calls cost as much as the last bucket's bytes. Looked for among the
/// powers of two, since T is no straight line where algorithms change.
BucketSizes bucketSizesFor(std::size_t stepBytes, const std::function<double(std::size_t)>& seconds);

}  // namespace tacc
