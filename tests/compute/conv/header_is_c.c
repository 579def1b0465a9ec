/* The public header is plain C11, and its initializer is complete. */
#include <tacc/compute.h>

int computeHeaderIsC(void);
int computeHeaderIsC(void) {
  taccConvDesc_t desc = TACC_CONV_INITIALIZER;
  taccConvPlan_t plan = NULL;
  int wrong = desc.size != sizeof(desc) || desc.batch != 1 || desc.strideWidth != 1 || desc.groups != 1 ||
              desc.maxWorkers != 1 || desc.algorithm != NULL || desc.inputLayout != taccLayoutNchw16c ||
              desc.dilationHeight != 1 || desc.padHeight != 0 || desc.relu != 0 ||
              desc.activation != taccActivationNone;
  wrong += taccConvPlanCreate(&plan, &desc) != taccInvalidArgument; /* no sizes yet */
  return wrong;
}
