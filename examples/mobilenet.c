/* MobileNet v2 forward, layer by layer, from random weights: plans, packed weights, fused bias, residual and ReLU6.
 * The image and the result are NHWC, as frameworks have them; inside the network layouts are the
 * library's own. Every layer is also computed by the definition, and compared: mobilenet [size of the image, 224]. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tacc/compute.h"

static void check(taccResult_t result) {
  if (result == taccSuccess) return;
  fprintf(stderr, "%s\n", taccGetLastError(NULL));
  exit(1);
}

static float* newFloats(size_t bytes) {
  float* floats = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (floats == NULL) exit(1);
  return floats;
}

static float* randomFloats(size_t bytes, float scale) {
  float* floats = newFloats(bytes);
  for (size_t i = 0; i < bytes / sizeof(float); ++i)
    floats[i] = scale * (2.0F * (float)rand() / (float)RAND_MAX - 1.0F);
  return floats;
}

/* Packs the weights and runs one layer; returns the output. `seconds` adds the processor time of the run alone. */
static float* run(const taccConvDesc_t* desc, const float* in, const float* residual, const float* weights,
                  const float* bias, taccConvInfo_t* info, double* seconds) {
  taccConvPlan_t plan;
  check(taccConvPlanCreate(&plan, desc));
  check(taccConvPlanGetInfo(plan, info));
  float* packed = newFloats(info->packedWeightBytes);
  float* workspace = newFloats(info->workspaceBytes);
  float* out = newFloats(info->outputBytes);
  check(taccConvPackWeights(plan, weights, packed));
  const taccConvBuffers_t buffers = {in, packed, NULL, bias, residual, out, workspace, info->workspaceBytes};
  const clock_t start = clock();
  check(taccConvRun(plan, &buffers, taccSerialExecutor()));
  *seconds += (double)(clock() - start) / CLOCKS_PER_SEC;
  check(taccConvPlanDestroy(plan));
  free(packed);
  free(workspace);
  return out;
}

typedef struct {
  float* image;
  int channels, size;
  taccLayout_t layout;
  int layers;
  double seconds;
} State;

/* One convolution: `state` gets its output. The input stays the caller's. */
static void layer(State* state, int outs, int kernel, int stride, int isDepthwise, int isActivated,
                  const float* residual, taccLayout_t outLayout) {
  taccConvDesc_t desc = TACC_CONV_INITIALIZER;
  desc.inChannels = state->channels;
  desc.height = desc.width = state->size;
  desc.outChannels = outs;
  desc.kernelHeight = desc.kernelWidth = kernel;
  desc.strideHeight = desc.strideWidth = stride;
  desc.padHeight = desc.padWidth = kernel / 2;
  desc.groups = isDepthwise ? outs : 1;
  desc.bias = 1;
  desc.activation = isActivated ? taccActivationRelu6 : taccActivationNone;
  desc.residual = residual != NULL;
  desc.inputLayout = state->layout;
  desc.outputLayout = outLayout;
  const size_t weightBytes = taccWeightBytes(taccWeightsKcrs, outs, desc.inChannels, kernel, kernel, desc.groups);
  const int summed = desc.inChannels / desc.groups * kernel * kernel;
  float* weights = randomFloats(weightBytes, sqrtf(3.0F / (float)summed));
  float* bias = randomFloats(sizeof(float) * (size_t)outs, 0.1F);
  taccConvInfo_t info, slow;
  double ignored = 0;
  float* out = run(&desc, state->image, residual, weights, bias, &info, &state->seconds);
  desc.algorithm = "reference";
  float* right = run(&desc, state->image, residual, weights, bias, &slow, &ignored);
  for (size_t i = 0; i < info.outputBytes / sizeof(float); ++i) {
    if (fabsf(out[i] - right[i]) <= 1e-4F * (1.0F + fabsf(right[i]))) continue;
    fprintf(stderr, "layer %d, %s: %g at %zu is not %g\n", state->layers, info.algorithm, out[i], i, right[i]);
    exit(1);
  }
  free(right);
  free(weights);
  free(bias);
  *state = (State){out, outs, info.outHeight, outLayout, state->layers + 1, state->seconds};
}

int main(int argc, char** argv) {
  static const struct {
    int expansion, outs, count, stride;
  } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  const int size = argc > 1 ? atoi(argv[1]) : 224;
  State state = {randomFloats(taccTensorBytes(taccLayoutNhwc, 1, 3, size, size), 1.0F), 3, size, taccLayoutNhwc, 0, 0};
  const taccLayout_t blocks = taccLayoutNchw16c;
  float* before = state.image;
  layer(&state, 32, 3, 2, 0, 1, NULL, blocks);
  free(before);
  for (size_t s = 0; s < sizeof(stages) / sizeof(stages[0]); ++s) {
    for (int i = 0; i < stages[s].count; ++i) {
      const State block = state;
      const int stride = i == 0 ? stages[s].stride : 1;
      if (stages[s].expansion > 1) layer(&state, block.channels * stages[s].expansion, 1, 1, 0, 1, NULL, blocks);
      float* expanded = state.image;
      layer(&state, state.channels, 3, stride, 1, 1, NULL, blocks);
      float* filtered = state.image;
      const int isResidual = stride == 1 && block.channels == stages[s].outs;
      layer(&state, stages[s].outs, 1, 1, 0, 0, isResidual ? block.image : NULL, blocks);
      if (expanded != block.image) free(expanded);
      free(filtered);
      free(block.image);
    }
  }
  before = state.image;
  layer(&state, 1280, 1, 1, 0, 1, NULL, taccLayoutNhwc);
  free(before);
  printf("%d layers of MobileNet v2 in %.2f ms (%s), 1280 channels of %d x %d, all as the definition says\n",
         state.layers, 1e3 * state.seconds, taccComputeIsa(), state.size, state.size);
  free(state.image);
  return 0;
}
