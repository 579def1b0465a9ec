/** tacc: the node-level compute library. Public C interface: 2-D convolutions for frameworks to plug in.
 *
 * A convolution is described, planned, and run as often as wanted:
 *
 *   taccConvDesc_t desc = TACC_CONV_INITIALIZER;         what: shape, pass, layouts, what is fused
 *   taccConvPlanCreate(&plan, &desc);                    how: immutable, for any number of threads at once
 *   taccConvPlanGetInfo(plan, &info);                    which kernel, how much workspace, how long
 *   taccConvPackWeights(plan, weights, packed);          again whenever the weights change
 *   taccConvRun(plan, &buffers, taccSerialExecutor());   no allocation, no lock, no hidden thread
 *
 * It needs no communicator. Conventions are those of tacc/tacc.h: results are taccSuccess or an error, outputs are
 * written on success only, and taccGetLastError(NULL) has a sentence that says what is wrong and what would be right.
 *
 * All numbers are float32; activations of convolutions may be bfloat16. Results are the same bits for every number of
 * threads; between instruction sets (TACC_ISA can lower them) they differ by rounding only. With AMX float32 is summed
 * from products of three bfloat16 each, with errors like those of float32; a result is NaN where one is infinite,
 * and numbers below 2^-126 count as zero. A plan of float32 made while AMX is slow, as where another virtual machine
 * uses it, takes AVX-512, unless TACC_ISA, TACC_REPRODUCIBLE=on or desc.algorithm fix it. The first plan asks Linux for
 * AMX's registers, for the process; TACC_ISA=avx512 does without.
 * @file */
#ifndef TACC_COMPUTE_H
#define TACC_COMPUTE_H

#include "tacc/tacc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------------- layouts */

/** Layouts of activations: batch of N images with C channels of H x W. */
typedef enum {
  /** [N][C / 16][H][W][16]: the fast one. C is rounded up to a multiple of 16; the channels beyond C hold zeros, and
   * stay zeros in what the library writes. */
  taccLayoutNchw16c = 0,
  taccLayoutNchw = 1, /**< [N][C][H][W] */
  taccLayoutNhwc = 2  /**< [N][H][W][C] */
} taccLayout_t;

/** Layouts of weights: K output channels, C input channels of one group, kernels of R x S. */
typedef enum {
  taccWeightsKcrs = 0, /**< [K][C][R][S], that of the frameworks */
  /** For each group [K / 16][C / 16][R][S][16 of C][16 of K], K of the group rounded up to a multiple of 16 (zeros);
   * the last block of C has only as many rows as there are channels. An optimizer can work on it as it is: gradients
   * have the same layout, and the zeros stay zeros. Channel-wise (groups of one input and one output channel): [groups
   * / 16] [R][S][16 groups], rounded up likewise. */
  taccWeightsBlocked = 1
} taccWeightLayout_t;

/** Bytes of a tensor of float32; of bfloat16 it is half of that. 0 when a size is not positive, or when it does not fit
 * into size_t. */
TACC_API size_t taccTensorBytes(taccLayout_t layout, int batch, int channels, int height, int width);
/** Bytes of the weights. Channel counts are those of the whole convolution. 0 as above. */
TACC_API size_t taccWeightBytes(taccWeightLayout_t layout, int outChannels, int inChannels, int kernelHeight,
                                int kernelWidth, int groups);

/** Copies activations from one layout to another. Costs a read and a write of the tensor: taccReorderSeconds() says
 * about how long. `from` and `to` do not overlap. */
TACC_API taccResult_t taccReorder(taccLayout_t fromLayout, const float* from, taccLayout_t toLayout, float* to,
                                  int batch, int channels, int height, int width);
/** Copies weights, or their gradients, from one layout to the other. */
TACC_API taccResult_t taccReorderWeights(taccWeightLayout_t fromLayout, const float* from, taccWeightLayout_t toLayout,
                                         float* to, int outChannels, int inChannels, int kernelHeight, int kernelWidth,
                                         int groups);
/** Copies `count` numbers from one type to another, float32 and bfloat16 in either direction; to the nearest, of two as
 * near to the even one. `from` and `to` do not overlap. */
TACC_API taccResult_t taccConvertNumbers(taccDataType_t fromType, const void* from, taccDataType_t toType, void* to,
                                         size_t count);
/** About how long taccReorder takes on one thread, in seconds, from the bytes that it moves. */
TACC_API double taccReorderSeconds(int batch, int channels, int height, int width);

/* --------------------------------------------------------------------------------------------------------- executors
 */

/** The caller's threads. `run` calls task(argument, i, worker) once for every i in [0, tasks), in any order, on any
 * threads, with `worker` in [0, workers) such that no two calls that run at the same time have the same; it returns
 * when all are done. */
typedef struct {
  void* context; /**< for `run` */
  int workers;   /**< >= 1 */
  void (*run)(void* context, size_t tasks, void (*task)(void* argument, size_t index, int worker),
              void* argument); /**< see above */
} taccExecutor_t;

/** Everything in the calling thread. Never NULL. tacc/compute_openmp.h has one over OpenMP. */
TACC_API const taccExecutor_t* taccSerialExecutor(void);

/* ------------------------------------------------------------------------------------------------------ convolutions
 */

/** The passes of a convolution. */
typedef enum {
  taccConvForward = 0,        /**< output = epilogue(input * weights) */
  taccConvBackwardData = 1,   /**< gradient of the input, from the gradient of the output and the weights */
  taccConvBackwardWeights = 2 /**< gradient of the weights, from the input and the gradient of the output */
} taccConvPass_t;

/** Functions of one number that a forward pass applies to its results at last, after bias and residual, while they are
 * in registers. All are 0 at 0, so the channels that fill up taccLayoutNchw16c stay zeros. */
typedef enum {
  taccActivationNone = 0,
  taccActivationRelu = 1,  /**< max(x, 0) */
  taccActivationRelu6 = 2, /**< min(max(x, 0), 6) */
  /** x / (1 + exp(-x)), also called swish: to 4e-7 of its value, and to 1e-36 where it is smaller than that. */
  taccActivationSilu = 3,
  taccActivationHardSwish = 4 /**< x * min(max(x + 3, 0), 6) / 6 */
} taccActivation_t;

/** What is to be done. Always start from TACC_CONV_INITIALIZER, so that a program compiled against an older header
 * keeps its meaning with a newer library. Sizes are those of the forward convolution, for every pass: the output has
 * (height + 2 * padHeight - dilationHeight * (kernelHeight - 1) - 1) / strideHeight + 1 lines. */
typedef struct {
  size_t size;                       /**< sizeof(taccConvDesc_t) as compiled in the program */
  taccConvPass_t pass;               /**< default: forward */
  int batch;                         /**< images */
  int inChannels, height, width;     /**< of the input */
  int outChannels;                   /**< of the output */
  int kernelHeight, kernelWidth;     /**< of the weights */
  int strideHeight, strideWidth;     /**< default 1 */
  int padHeight, padWidth;           /**< zeros on either side; default 0 */
  int dilationHeight, dilationWidth; /**< default 1 */
  int groups;                        /**< divides both channel counts; default 1 */
  /** Layout of the input and its gradient. Any layout serves; up to 8 channels (the first layer of a network) are read
   * from plain ones as they are, and where input and output are NCHW, groups of up to 8 channels on either side, and
   * forward and backward data 1x1 kernels of up to 65,536 weights. NHWC is read, and where its channels are a multiple
   * of 16 written, in place by many algorithms. What is left is reordered a few images at a time, in the workspace
   * (taccConvInfo_t says so). */
  taccLayout_t inputLayout;
  taccWeightLayout_t weightLayout; /**< of what is packed, or of the gradient that backward weights writes */
  int bias;                        /**< forward: add one number per output channel */
  int residual;                    /**< forward: add a tensor of the output's shape */
  int relu;                        /**< forward: the same as `activation` being taccActivationRelu */
  int accumulate;                  /**< backward passes: add to what the result holds */
  /** Forward and backward data, for 3x3 kernels of stride 1: may transform the sums to save up to seven of nine
   * products (Winograd). Costs some digits: errors are up to about 2e-5 of the largest value, where the definition has
   * 1e-6. */
  int winograd;
  int maxWorkers; /**< most workers of the executors it will run on; workspace grows with it; default 1 */
  /** Of the input, the output, the residual and the gradients of input and output: taccFloat32 (default), or
   * taccBfloat16, which halves what they take in memory. Sums are float32 all the same, and results are rounded once,
   * to the nearest. Weights, their gradient and the bias are float32 in either case. Where the CPU multiplies bfloat16
   * the gradient of the weights is made so, whose products are exact; numbers below 1.2e-38 may then count as zeros. */
  taccDataType_t activationType;
  const char* algorithm; /**< force one by its name (taccConvAlgorithms); NULL: the library chooses */
  /** Layout of the output, the residual and the output's gradient, as inputLayout; default taccLayoutNchw16c. */
  taccLayout_t outputLayout;
  int reserved; /**< is not read: older programs leave it to chance */
  /** Forward: is applied at last. Backward passes take the gradient of what goes into it: for training, keep that in
   * place of the output where the function's gradient needs it. Default: taccActivationNone. */
  taccActivation_t activation;
  int reservedBehind; /**< is not read: older programs leave it to chance */
  /** Forward and backward data with activations of taccBfloat16: weights may be rounded to bfloat16 too, when they are
   * packed. CPUs with AMX, and AMD's Zen 4, then multiply two to four times as many numbers a cycle, as they lie
   * in memory; others do as without it. Errors are up to about 2^-9 of the sum of all products' magnitudes, and numbers
   * below 1.2e-38 may count as zeros. Default 0. */
  int roundWeights;
  int reservedLast; /**< is not read */
} taccConvDesc_t;

/** The defaults; all sizes but the batch are 0. */
#define TACC_CONV_INITIALIZER                                                                                   \
  {                                                                                                             \
    sizeof(taccConvDesc_t), taccConvForward, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, taccLayoutNchw16c,       \
        taccWeightsKcrs, 0, 0, 0, 0, 0, 1, taccFloat32, NULL, taccLayoutNchw16c, 0, taccActivationNone, 0, 0, 0 \
  }

typedef struct taccConvPlan* taccConvPlan_t; /**< immutable: any number of threads may run it */

/** What a plan needs and does. */
typedef struct {
  int outHeight, outWidth;        /**< of the output */
  size_t inputBytes, outputBytes; /**< of the input's and the output's tensors, in the plan's layouts and type */
  size_t weightBytes;             /**< of the weights, or their gradient, in the description's layout */
  size_t packedWeightBytes;       /**< what taccConvPackWeights writes; 0 for backward weights */
  size_t workspaceBytes;          /**< for maxWorkers workers */
  double operations;              /**< multiplications and additions by the definition, padding included */
  double predictedSeconds;        /**< on one worker, by the model that chose the algorithm; a guess */
  const char* algorithm;          /**< e.g. "direct"; lives as long as the library */
  const char* kernel; /**< e.g. "avx512 14x2": instruction set, pixels x blocks; lives as long as the plan */
  /** Of predictedSeconds, what goes into reordering plain layouts; 0 where nothing is reordered. `kernel` then says
   * "reorders input", "reorders output" or "reorders input, output". */
  double reorderSeconds;
} taccConvInfo_t;

/** Makes a plan. Never measures, so it is quick (microseconds) and the same on every call, but for taccConvLoadTuning.
 * Thread safe. */
TACC_API taccResult_t taccConvPlanCreate(taccConvPlan_t* plan, const taccConvDesc_t* desc);
/** No run may be using it. NULL is ignored. */
TACC_API taccResult_t taccConvPlanDestroy(taccConvPlan_t plan);
/** What the plan needs and does. */
TACC_API taccResult_t taccConvPlanGetInfo(taccConvPlan_t plan, taccConvInfo_t* info);
/** Brings weights, in the description's layout, into the order in which this plan reads them. Costs a read and a write
 * of the weights. `packed` is aligned to 64 bytes. */
TACC_API taccResult_t taccConvPackWeights(taccConvPlan_t plan, const float* weights, float* packed);

/** Where everything is. Tensors in taccLayoutNchw16c, packed weights and the workspace are aligned to 64 bytes. Nothing
 * that is written overlaps anything else, except that `residual` may be `output`. */
typedef struct {
  const void* input;          /**< forward and backward weights read it; activations are of the description's type */
  const float* packedWeights; /**< forward and backward data read them */
  const void* outputGradient; /**< the backward passes read it */
  const float* bias;          /**< outChannels numbers; only if the description has a bias */
  const void* residual;       /**< only if the description has it */
  void* result;               /**< the output, the input's gradient, or (float32) the weights' gradient */
  void* workspace;            /**< may be NULL if the plan needs none */
  size_t workspaceBytes;      /**< at least taccConvInfo_t.workspaceBytes */
} taccConvBuffers_t;

/** Runs the plan. Thread safe: any number of runs of one plan may be under way, each with its own result and workspace.
 */
TACC_API taccResult_t taccConvRun(taccConvPlan_t plan, const taccConvBuffers_t* buffers,
                                  const taccExecutor_t* executor);

/** Makes a plan of two forward convolutions, of which the second reads what the first writes, for the functions above
 * and taccConvChainPackWeights. Where the first is channel-wise and the second 1x1, as in MobileNet, and what is
 * between them would leave the L2 cache, both are computed in one pass, some lines of each image at a time
 * ("depthwise-product"); else one behind the other ("in-turn"), with what is between them in the workspace. The first
 * one's outputLayout and the second one's inputLayout are not read, activationType and maxWorkers are equal, and the
 * first adds no residual. In taccConvBuffers_t the input is the first one's; bias, residual and result are the second
 * one's. `first->algorithm` may be one of the two names; other names, in either description, are of algorithms for one
 * behind the other. Never measures. Thread safe. */
TACC_API taccResult_t taccConvChainPlanCreate(taccConvPlan_t* plan, const taccConvDesc_t* first,
                                              const taccConvDesc_t* second);
/** As taccConvPackWeights, for such a plan: the weights of both, in the layouts of their descriptions, and the first
 * one's bias (outChannels numbers; not read if its description has none). */
TACC_API taccResult_t taccConvChainPackWeights(taccConvPlan_t plan, const float* firstWeights, const float* firstBias,
                                               const float* secondWeights, float* packed);

/** Reads which algorithms were measured to be the fastest (tacc_tune conv writes such files), for all plans that are
 * created from now on, in place of an earlier file; NULL: forgets them. A convolution that stands in the file, for as
 * many workers, gets its algorithm unless the description forces one; all others are left to the model. A file of
 * another CPU model or instruction set is refused. After an error everything is as before. Thread safe. */
TACC_API taccResult_t taccConvLoadTuning(const char* file);

/** The names of all algorithms with commas between, best first. */
TACC_API const char* taccConvAlgorithms(void);
/** The instruction set of the kernels: amx, avx512, avx2, sse2 or neon. NULL if TACC_ISA does not fit this CPU. */
TACC_API const char* taccComputeIsa(void);
/** The model of the CPU, as it stands in tuning files. Never NULL. */
TACC_API const char* taccComputeCpu(void);
/** Measures, for `seconds`, how many floating-point operations a second one core can do with nothing but multiply-adds
 * in registers: what the kernels are compared with. 0 on an error. */
TACC_API double taccMeasurePeak(double seconds);

/* ---------------------------------------------------------------------------------------------- products of matrices
 */

/** C = relu(A * B + bias + C), the last three where wanted; C has m rows and n columns, the inner length is k. Matrices
 * are row-major. Fully connected layers are such: forward Y = X * W + b, backward dX = dY * W', dW = X' * dY. Always
 * start from TACC_GEMM_INITIALIZER. */
typedef struct {
  size_t size;             /**< sizeof(taccGemmDesc_t) as compiled in the program */
  int m, n, k;             /**< rows and columns of C, and the inner length */
  ptrdiff_t lda, ldb, ldc; /**< numbers from row to row as stored; 0: rows follow each other */
  int transposeA;          /**< A is stored as k rows of m */
  int transposeB;          /**< B is stored as n rows of k */
  int bias;                /**< one number per column */
  int accumulate;          /**< add to what C holds */
  int relu;                /**< at last, max(x, 0) */
  int maxWorkers;          /**< most workers of the executors it will run on; default 1 */
  /** Products of the same sizes, each with separate matrices and a common bias. Default 1. The distances
   * are numbers from one matrix to the next; 0: they follow each other. */
  int batch;
  ptrdiff_t strideA, strideB, strideC; /**< see `batch` */
} taccGemmDesc_t;

/** The defaults; all sizes are 0. */
#define TACC_GEMM_INITIALIZER \
  { sizeof(taccGemmDesc_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0 }

typedef struct taccGemmPlan* taccGemmPlan_t; /**< immutable: any number of threads may run it */

/** What a plan needs and does. */
typedef struct {
  size_t packedBytes;      /**< what taccGemmPack writes */
  size_t workspaceBytes;   /**< for maxWorkers workers */
  double operations;       /**< multiplications and additions */
  double predictedSeconds; /**< a guess, as in taccConvInfo_t */
  const char* kernel;      /**< lives as long as the plan */
} taccGemmInfo_t;

/** As for convolutions: plan, pack B whenever it changes, run as often as wanted, on any threads. */
TACC_API taccResult_t taccGemmPlanCreate(taccGemmPlan_t* plan, const taccGemmDesc_t* desc);
/** No run may be using it. NULL is ignored. */
TACC_API taccResult_t taccGemmPlanDestroy(taccGemmPlan_t plan);
/** What the plan needs and does. */
TACC_API taccResult_t taccGemmPlanGetInfo(taccGemmPlan_t plan, taccGemmInfo_t* info);
/** `packed` is aligned to 64 bytes. Costs a read and a write of B, or of all B of the batch. */
TACC_API taccResult_t taccGemmPack(taccGemmPlan_t plan, const float* b, float* packed);

/** packedB and the workspace are aligned to 64 bytes, the rest as floats are. C overlaps nothing. */
typedef struct {
  const float* a;        /**< the matrix, or the first of the batch */
  const float* packedB;  /**< what taccGemmPack wrote */
  const float* bias;     /**< n numbers; only if the description has a bias */
  float* c;              /**< the result */
  void* workspace;       /**< may be NULL if the plan needs none */
  size_t workspaceBytes; /**< at least taccGemmInfo_t.workspaceBytes */
} taccGemmBuffers_t;

/** Runs the plan. Thread safe, as taccConvRun. */
TACC_API taccResult_t taccGemmRun(taccGemmPlan_t plan, const taccGemmBuffers_t* buffers,
                                  const taccExecutor_t* executor);

/* ---------------------------------------------------------------------------------------------- the rest of training
 */

/** What is taken of a window: its largest value, or their mean. */
typedef enum { taccPoolMax = 0, taccPoolAverage = 1 } taccPoolKind_t;

/** Pooling of activations in taccLayoutNchw16c. Pixels of the padding do not count, neither for the largest value nor
 * for the average. Always start from TACC_POOL_INITIALIZER. */
typedef struct {
  size_t size;                        /**< sizeof(taccPoolDesc_t) as compiled in the program */
  taccPoolKind_t kind;                /**< default: taccPoolMax */
  int batch, channels, height, width; /**< of the input */
  int kernelHeight, kernelWidth;      /**< of the window */
  int strideHeight, strideWidth;      /**< default 1 */
  int padHeight, padWidth;            /**< less than the window; default 0 */
} taccPoolDesc_t;

/** The defaults; all sizes but the batch are 0. */
#define TACC_POOL_INITIALIZER \
  { sizeof(taccPoolDesc_t), taccPoolMax, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0 }

/** The output has (height + 2 * padHeight - kernelHeight) / strideHeight + 1 lines. */
TACC_API taccResult_t taccPoolForward(const taccPoolDesc_t* desc, const float* input, float* output,
                                      const taccExecutor_t* executor);
/** Of equal largest values the first one gets the gradient. taccPoolAverage reads neither `input` nor `output`; they
 * may be NULL then. */
TACC_API taccResult_t taccPoolBackward(const taccPoolDesc_t* desc, const float* input, const float* output,
                                       const float* outputGradient, float* inputGradient,
                                       const taccExecutor_t* executor);

/** Batch normalisation of activations in taccLayoutNchw16c: for each channel, statistics over images and pixels. Always
 * start from TACC_BATCH_NORM_INITIALIZER. */
typedef struct {
  size_t size;                        /**< sizeof(taccBatchNormDesc_t) as compiled in the program */
  int batch, channels, height, width; /**< of the input and the output */
  float epsilon;                      /**< is added to the variance; default 1e-5 */
  float momentum;                     /**< what this batch counts for in the running statistics, 0 to 1; default 0.1 */
  int relu;                           /**< at last, max(x, 0); default 0 */
} taccBatchNormDesc_t;

/** The defaults; all sizes but the batch are 0. */
#define TACC_BATCH_NORM_INITIALIZER \
  { sizeof(taccBatchNormDesc_t), 1, 0, 0, 0, 1e-5F, 0.1F, 0 }

/** Where everything is. Arrays that are not tensors have one number per channel. Nothing that is written overlaps
 * anything else, except that `output` may be `input` or `residual`. */
typedef struct {
  const float* input;      /**< the tensor */
  const float* scale;      /**< per channel */
  const float* shift;      /**< per channel */
  const float* residual;   /**< a tensor that is added before relu; may be NULL */
  float* output;           /**< (input - mean) / sqrt(variance + epsilon) * scale + shift */
  float* mean;             /**< training writes the batch's, for the backward pass */
  float* inverseDeviation; /**< training writes 1 / sqrt(variance + epsilon), for the backward pass */
  /** Training moves both towards the batch's, by the momentum; the variance is that of a sample (count - 1). Both may
   * be NULL then. Inference normalises with them. */
  float* runningMean;
  float* runningVariance; /**< see runningMean */
} taccBatchNormBuffers_t;

/** With the statistics of the batch. Up to one worker per 16 channels is busy. Reads the input twice. */
TACC_API taccResult_t taccBatchNormTrain(const taccBatchNormDesc_t* desc, const taccBatchNormBuffers_t* buffers,
                                         const taccExecutor_t* executor);
/** With the running statistics. */
TACC_API taccResult_t taccBatchNormInfer(const taccBatchNormDesc_t* desc, const taccBatchNormBuffers_t* buffers,
                                         const taccExecutor_t* executor);

/** Of the backward pass. `outputGradient` is that of the normalised values: behind a relu, taccReluBackward comes
 * first; what it gives is also the residual's gradient. */
typedef struct {
  const float* input;            /**< as in training */
  const float* outputGradient;   /**< see above */
  const float* scale;            /**< as in training */
  const float* mean;             /**< as training has written it */
  const float* inverseDeviation; /**< likewise */
  float* inputGradient;          /**< may be `outputGradient`, or NULL if it is not wanted */
  float* scaleGradient;          /**< per channel */
  float* shiftGradient;          /**< per channel */
} taccBatchNormGradients_t;

/** Of taccBatchNormTrain. desc->relu is ignored. */
TACC_API taccResult_t taccBatchNormBackward(const taccBatchNormDesc_t* desc, const taccBatchNormGradients_t* buffers,
                                            const taccExecutor_t* executor);

/** Local response normalisation across channels, of activations in taccLayoutNchw16c:
 *   output = input * (base + alpha / window * sum of the squares of the `window` channels around)^-beta
 * with zeros before the first and after the last channel. Always start from TACC_LRN_INITIALIZER. */
typedef struct {
  size_t size;                        /**< sizeof(taccLrnDesc_t) as compiled in the program */
  int batch, channels, height, width; /**< of the input and the output */
  int window;                         /**< odd, up to 33; default 5 */
  float base;                         /**< > 0; default 1 */
  float alpha;                        /**< >= 0; default 1e-4 */
  float beta;                         /**< default 0.75 */
} taccLrnDesc_t;

/** The defaults; all sizes but the batch are 0. */
#define TACC_LRN_INITIALIZER \
  { sizeof(taccLrnDesc_t), 1, 0, 0, 0, 5, 1.0F, 1e-4F, 0.75F }

/** Powers are right to about 1e-6 of their value. `output` does not overlap `input`. */
TACC_API taccResult_t taccLrnForward(const taccLrnDesc_t* desc, const float* input, float* output,
                                     const taccExecutor_t* executor);
/** Needs nothing from the forward pass but its input. `inputGradient` overlaps nothing. */
TACC_API taccResult_t taccLrnBackward(const taccLrnDesc_t* desc, const float* input, const float* outputGradient,
                                      float* inputGradient, const taccExecutor_t* executor);

/** Dropout of `count` numbers: with the chance `rate`, from 0 to below 1, output is 0, else input / (1 - rate). Who is
 * dropped follows from seed, step and the place alone, so it is the same for every number of threads and on every CPU,
 * and no mask is kept: backward, the same call with the same rate, seed and step takes the output's gradient to the
 * input's. Layers have seeds of their own, and `step` counts up from call to call. May be in place.
 * The rate is first rounded to the nearest 65536th, at most 65535 of them. Dropped are places with a random number of
 * 16 bits below rate * 65536. The numbers of the places i and i + 16, for even i / 16, are the lower and the upper half
 * of word i / 32 % 4 of Philox4x32-7 with the counter {i / 128 * 16 + i % 16, step}, of two 64-bit numbers, and the key
 * `seed`. */
TACC_API taccResult_t taccDropout(const float* input, float* output, size_t count, float rate, uint64_t seed,
                                  uint64_t step, const taccExecutor_t* executor);

/** inputGradient = outputGradient where output > 0, else 0; `count` numbers. May be in place. */
TACC_API taccResult_t taccReluBackward(const float* output, const float* outputGradient, float* inputGradient,
                                       size_t count);
/** Gradient of a convolution's bias: for each channel the sum over images and pixels of a taccLayoutNchw16c tensor. */
TACC_API taccResult_t taccBiasGradient(const float* outputGradient, float* gradient, int batch, int channels,
                                       int height, int width, int accumulate);
/** The mean of -log(softmax(scores)[label]) over `rows` rows of `classes` scores, and, unless NULL, its gradient. */
TACC_API taccResult_t taccSoftmaxLoss(const float* scores, const int* labels, double* loss, float* gradient, int rows,
                                      int classes);
/** velocity = momentum * velocity + rate * (gradient + decay * weights); weights -= velocity. Any layout. */
TACC_API taccResult_t taccSgdMomentum(float* weights, float* velocity, const float* gradient, size_t count, float rate,
                                      float momentum, float decay);

#ifdef __cplusplus
}
#endif

#endif
