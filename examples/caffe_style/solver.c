/* A solver as Caffe's: parameters are blobs, packed into one array of values and one of gradients. A step computes
 * gradients from this rank's images, sums them over the ranks with MPI_Allreduce, and updates the values with momentum.
 * It is a plain MPI program that knows nothing of tacc:
 *
 *   mpiexec -n 2 solver                                     collectives by MPI
 *   mpiexec -n 2 env LD_PRELOAD=libtacc_mpi.so solver       the same program, by tacc
 *
 * It fits y = W x, with hidden W, by least squares; every step is the same work. `solver [OUTPUTS INPUTS STEPS]`: 1000
 * 1000
 * 20. Rank 0 prints a line: the loss, and where the time went. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { batch = 4 };

/* A piece of the model, as Caffe's Blob: it owns nothing, its numbers lie in the solver's arrays. */
typedef struct {
  size_t count;
  float *values, *gradient;
} Blob;

typedef struct {
  size_t count; /* of all blobs together */
  float *values, *gradients, *velocity;
  Blob weights, bias;
} Solver;

static Solver makeSolver(int outputs, int inputs) {
  Solver s = {.count = (size_t)outputs * (size_t)inputs + (size_t)outputs};
  s.values = calloc(3 * s.count, sizeof(float));
  s.gradients = s.values + s.count;
  s.velocity = s.gradients + s.count;
  s.weights = (Blob){(size_t)outputs * (size_t)inputs, s.values, s.gradients};
  s.bias = (Blob){(size_t)outputs, s.values + s.weights.count, s.gradients + s.weights.count};
  return s;
}

/* Between -1 and 1, the same on all ranks for the same number. */
static float drawn(unsigned number) {
  number = (number ^ 61U ^ (number >> 16)) * 9U;
  number = (number ^ (number >> 4)) * 0x27d4eb2dU;
  return (float)((number ^ (number >> 15)) % 2001U) / 1000.0f - 1;
}

/* Forward and backward pass over a batch of this rank's own images; the mean loss of an output. */
static double computeGradients(Solver* s, int outputs, int inputs, unsigned seed) {
  double loss = 0;
  memset(s->gradients, 0, s->count * sizeof(float));
  for (unsigned image = 0; image < batch; ++image) {
    float* x = malloc((size_t)inputs * sizeof(float));
    for (int i = 0; i < inputs; ++i) x[i] = drawn(seed * 7919U + image * 104729U + (unsigned)i);
    for (int o = 0; o < outputs; ++o) {
      const float* w = s->weights.values + (size_t)o * (size_t)inputs;
      float difference = s->bias.values[o] - 0.5f; /* the hidden model: 1 on a diagonal, and a bias of a half */
      for (int i = 0; i < inputs; ++i) difference += w[i] * x[i];
      difference -= x[o % inputs];
      loss += difference * difference / (float)(batch * outputs);
      const float scaled = difference / batch;
      for (int i = 0; i < inputs; ++i) s->weights.gradient[(size_t)o * (size_t)inputs + (size_t)i] += scaled * x[i];
      s->bias.gradient[o] += scaled;
    }
    free(x);
  }
  return loss;
}

static void update(Solver* s, float rate, float momentum) {
  for (size_t i = 0; i < s->count; ++i) {
    s->velocity[i] = momentum * s->velocity[i] - rate * s->gradients[i];
    s->values[i] += s->velocity[i];
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int outputs = argc > 1 ? atoi(argv[1]) : 1000, inputs = argc > 2 ? atoi(argv[2]) : 1000;
  const int steps = argc > 3 ? atoi(argv[3]) : 20;
  if (outputs < 1 || inputs < 1 || steps < 2) {
    if (rank == 0) fprintf(stderr, "usage: solver [OUTPUTS INPUTS STEPS], each at least 1, and 2 steps\n");
    MPI_Finalize();
    return EXIT_FAILURE;
  }
  Solver solver = makeSolver(outputs, inputs);
  double first = 0, last = 0, computing = 0, communicating = 0;
  for (int step = 0; step < steps; ++step) {
    const double begin = MPI_Wtime();
    last = computeGradients(&solver, outputs, inputs, (unsigned)(step * ranks + rank));
    const double computed = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, solver.gradients, (int)solver.count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double summed = MPI_Wtime();
    update(&solver, 0.5f / (float)(inputs * ranks), 0.9f);
    if (step == 0) first = last;
    if (step == 0) continue; /* pays for memory and connections */
    computing += computed - begin + MPI_Wtime() - summed;
    communicating += summed - computed;
  }
  /* All ranks have the same model, bit for bit. */
  double sum = 0, least, most;
  for (size_t i = 0; i < solver.count; ++i) sum += solver.values[i];
  MPI_Allreduce(&sum, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&sum, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d ranks, %zu parameters: loss %.4f, then %.4f; a step computes %.3f ms and waits %.3f ms\n", ranks,
           solver.count, first, last, 1e3 * computing / (steps - 1), 1e3 * communicating / (steps - 1));
  free(solver.values);
  MPI_Finalize();
  return least == most && isfinite(last) && last < first ? EXIT_SUCCESS : EXIT_FAILURE;
}
