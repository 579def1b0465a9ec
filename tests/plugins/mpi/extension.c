/* A part of a program that is loaded when the program runs, and has MPI for itself, as an interpreter's extensions do.
 */
#include <mpi.h>
#include <stdio.h>

__attribute__((visibility("default"))) int sumOfOnes(void);

/* 0 when the sum is right. */
int sumOfOnes(void) {
  int rank = 0;
  int ranks = 0;
  int one = 1;
  int sum = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum == ranks ? 0 : 1;
}
