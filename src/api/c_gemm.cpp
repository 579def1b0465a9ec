// The C functions of tacc/compute.h that multiply matrices.
#include <memory>

#include "api/boundary.hpp"
#include "api/compute_check.hpp"
#include "compute/gemm/gemm.hpp"

using tacc::guard;
namespace check = tacc::compute_check;
namespace gemm = tacc::gemm;

/// What a handle points to.
struct taccGemmPlan {
  gemm::Description description;
  gemm::GemmPlan plan;
};

taccResult_t taccGemmPlanCreate(taccGemmPlan_t* plan, const taccGemmDesc_t* desc) {
  return guard("taccGemmPlanCreate", nullptr, [&] {
    check::require(plan, "plan");
    check::require(desc, "desc");
    const gemm::Description description = gemm::understand(*desc);
    *plan = std::make_unique<taccGemmPlan>(
                taccGemmPlan{description, gemm::GemmPlan(description, check::kernelsForFloats())})
                .release();
  });
}

taccResult_t taccGemmPlanDestroy(taccGemmPlan_t plan) {
  delete plan;
  return taccSuccess;
}

taccResult_t taccGemmPlanGetInfo(taccGemmPlan_t plan, taccGemmInfo_t* info) {
  return guard("taccGemmPlanGetInfo", nullptr, [&] {
    check::require(plan, "plan");
    check::require(info, "info");
    const gemm::Description& d = plan->description;
    *info = {plan->plan.packedFloats() * sizeof(float), plan->plan.workspaceBytes(), 2.0 * d.m * d.n * d.k * d.batch,
             plan->plan.predictedSeconds(), plan->plan.kernel().c_str()};
  });
}

taccResult_t taccGemmPack(taccGemmPlan_t plan, const float* b, float* packed) {
  return guard("taccGemmPack", nullptr, [&] {
    check::require(plan, "plan");
    check::require(b, "b");
    check::requireAligned(packed, "packed");
    plan->plan.pack(b, packed);
  });
}

taccResult_t taccGemmRun(taccGemmPlan_t plan, const taccGemmBuffers_t* buffers, const taccExecutor_t* executor) {
  return guard("taccGemmRun", nullptr, [&] {
    check::require(plan, "plan");
    check::require(buffers, "buffers");
    check::require(buffers->a, "a");
    check::requireAligned(buffers->packedB, "packedB");
    if (plan->description.bias) check::require(buffers->bias, "bias");
    check::require(buffers->c, "c");
    check::checkWorkspace(buffers->workspace, buffers->workspaceBytes, plan->plan.workspaceBytes());
    check::checkExecutor(executor, plan->description.maxWorkers);
    plan->plan.run(*buffers, tacc::conv::TaskExecutor(*executor));
  });
}
