/* A convolution and a product of matrices by tacc/compute.h, which needs no communicator: a layer of 3x3 kernels with
 * bias and relu, and a fully connected one behind it, both compared with plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tacc/compute.h"

#define CHECK(call)                                  \
  if ((call) != taccSuccess) {                       \
    fprintf(stderr, "%s\n", taccGetLastError(NULL)); \
    return EXIT_FAILURE;                             \
  }

enum { images = 2, channels = 3, size = 12, kernels = 16, classes = 10, features = kernels * size * size };

/* Aligned as packed weights, workspaces and blocked tensors have to be. */
static float* numbers(size_t bytes) { return aligned_alloc(64, (bytes + 64) / 64 * 64); }

static float* drawn(size_t count) {
  float* values = numbers(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) values[i] = (float)((i * 7919 + 13) % 101) / 101.0f - 0.5f;
  return values;
}

/* What is left of one output of the convolution by its definition. */
static float convolved(const float* input, const float* weights, float bias, int image, int kernel, int row,
                       int column) {
  double sum = bias;
  for (int c = 0; c < channels; ++c)
    for (int r = 0; r < 3; ++r)
      for (int s = 0; s < 3; ++s) {
        const int y = row + r - 1, x = column + s - 1;
        if (y < 0 || y >= size || x < 0 || x >= size) continue;
        sum +=
            input[((image * channels + c) * size + y) * size + x] * weights[((kernel * channels + c) * 3 + r) * 3 + s];
      }
  return sum > 0 ? (float)sum : 0;
}

int main(void) {
  float* input = drawn(images * channels * size * size);
  float* weights = drawn(kernels * channels * 9);
  float* bias = drawn(kernels);

  taccConvDesc_t conv = TACC_CONV_INITIALIZER; /* one image and stride 1, unless it says otherwise */
  conv.batch = images;
  conv.inChannels = channels;
  conv.height = conv.width = size;
  conv.outChannels = kernels;
  conv.kernelHeight = conv.kernelWidth = 3;
  conv.padHeight = conv.padWidth = 1;
  conv.inputLayout = taccLayoutNchw; /* a network's first layer takes images as they are */
  conv.bias = conv.relu = 1;         /* in the same pass */
  taccConvPlan_t plan;
  taccConvInfo_t info;
  CHECK(taccConvPlanCreate(&plan, &conv)); /* once; it never measures */
  CHECK(taccConvPlanGetInfo(plan, &info));
  float* packed = numbers(info.packedWeightBytes);
  float* blocked = numbers(info.outputBytes); /* in blocks of 16 channels */
  float* workspace = numbers(info.workspaceBytes);
  CHECK(taccConvPackWeights(plan, weights, packed)); /* whenever the weights change */
  const taccConvBuffers_t buffers = {.input = input,
                                     .packedWeights = packed,
                                     .bias = bias,
                                     .result = blocked,
                                     .workspace = workspace,
                                     .workspaceBytes = info.workspaceBytes};
  CHECK(taccConvRun(plan, &buffers, taccSerialExecutor())); /* as often as wanted, on any threads */
  float* output = numbers(images * features * sizeof(float));
  CHECK(taccReorder(taccLayoutNchw16c, blocked, taccLayoutNchw, output, images, kernels, size, size));
  double error = 0;
  for (int i = 0; i < images * features; ++i) {
    const float right = convolved(input, weights, bias[i / (size * size) % kernels], i / features,
                                  i / (size * size) % kernels, i / size % size, i % size);
    error = fmax(error, fabs((double)output[i] - right));
  }
  printf("convolution by %s, %s: largest error %.1e\n", info.algorithm, info.kernel, error);

  float* matrix = drawn(features * classes); /* B: `features` rows of `classes` numbers */
  static float scores[images][classes];
  taccGemmDesc_t gemm = TACC_GEMM_INITIALIZER;
  gemm.m = images;
  gemm.n = classes;
  gemm.k = features;
  taccGemmPlan_t product;
  taccGemmInfo_t facts;
  CHECK(taccGemmPlanCreate(&product, &gemm));
  CHECK(taccGemmPlanGetInfo(product, &facts));
  float* packedMatrix = numbers(facts.packedBytes);
  float* space = numbers(facts.workspaceBytes);
  CHECK(taccGemmPack(product, matrix, packedMatrix));
  const taccGemmBuffers_t operands = {.a = output,
                                      .packedB = packedMatrix,
                                      .c = &scores[0][0],
                                      .workspace = space,
                                      .workspaceBytes = facts.workspaceBytes};
  CHECK(taccGemmRun(product, &operands, taccSerialExecutor()));
  double productError = 0;
  for (int i = 0; i < images; ++i)
    for (int n = 0; n < classes; ++n) {
      double right = 0;
      for (int k = 0; k < features; ++k) right += output[i * features + k] * matrix[k * classes + n];
      productError = fmax(productError, fabs(scores[i][n] - right));
    }
  printf("product by %s: largest error %.1e\n", facts.kernel, productError);

  CHECK(taccGemmPlanDestroy(product));
  CHECK(taccConvPlanDestroy(plan));
  float* all[] = {input, weights, bias, packed, blocked, workspace, output, matrix, packedMatrix, space};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) free(all[i]);
  return error < 1e-5 && productError < 1e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
