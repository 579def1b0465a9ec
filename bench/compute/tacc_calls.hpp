// What contestants of tacc/compute.h have in common: results that are checked, and runs on some threads.
#pragma once

#include <stdexcept>

#include "tacc/compute.h"
#include "tacc/tacc.h"
#ifdef TACC_BENCH_OPENMP
#include "tacc/compute_openmp.h"
#endif

namespace tacc::bench {

inline void check(taccResult_t result) {
  if (result != taccSuccess) throw std::runtime_error(taccGetLastError(nullptr));
}

/// Calls run(executor) with one of so many threads; its result is checked.
template <class Run>
void runOn([[maybe_unused]] int threads, const Run& run) {
#ifdef TACC_BENCH_OPENMP
  if (threads > 1) {
    const taccExecutor_t executor = taccOpenMpExecutor(&threads);
    check(run(&executor));
    return;
  }
#endif
  check(run(taccSerialExecutor()));
}

struct DestroyConvPlan {
  void operator()(taccConvPlan_t plan) const { taccConvPlanDestroy(plan); }
};

}  // namespace tacc::bench
