/** tacc: messages between hosts through the program's own MPI, for networks that neither UCX nor libfabric serves.
 *
 * Header only, so that tacc itself need not know which MPI that is. The functions belong to the program: one that calls
 * them from another thread (a tacc stream) has initialized MPI with at least MPI_THREAD_SERIALIZED, and with
 * MPI_THREAD_MULTIPLE if it uses MPI at the same time.
 *
 * Errors of MPI become errors of tacc. MPICH takes those of requests to the handler of MPI_COMM_WORLD, which ends the
 * program unless that is MPI_ERRORS_RETURN.
 * @file */
#ifndef TACC_MPI_TRANSPORT_H
#define TACC_MPI_TRANSPORT_H

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A request is kept in the pointer that tacc holds: MPI_Request is an int or a pointer. */
typedef char taccMpiRequestFitsPointer[sizeof(MPI_Request) <= sizeof(void*) ? 1 : -1];

/** What the functions of the table below are called with. */
typedef struct {
  MPI_Comm comm; /**< a duplicate, theirs alone */
} taccMpiContext_t;

/** What tacc calls the outcome of an MPI call. */
static inline taccResult_t taccMpiResult(int code) {
  int kind = MPI_SUCCESS;
  if (code == MPI_SUCCESS) return taccSuccess;
  MPI_Error_class(code, &kind);
  return kind == MPI_ERR_TRUNCATE ? taccInvalidUsage : taccRemoteError;
}

/** How many of which type are `bytes` bytes. MPI counts in int: what does not fit is one element of a type that is made
 * for it, and that the caller frees once it has been used. */
static inline int taccMpiType(size_t bytes, int* count, MPI_Datatype* type) {
  const int unit = 1 << 30;
  int lengths[2];
  MPI_Aint places[2] = {0, 0};
  MPI_Datatype types[2];
  int code;
  *count = (int)bytes;
  *type = MPI_BYTE;
  if (bytes <= INT_MAX) return MPI_SUCCESS;
  *count = 1;
  lengths[0] = (int)(bytes / (size_t)unit);
  lengths[1] = (int)(bytes % (size_t)unit);
  places[1] = (MPI_Aint)((size_t)lengths[0] * (size_t)unit);
  types[1] = MPI_BYTE;
  code = MPI_Type_contiguous(unit, MPI_BYTE, &types[0]);
  if (code != MPI_SUCCESS) return code;
  code = MPI_Type_create_struct(2, lengths, places, types, type);
  MPI_Type_free(&types[0]);
  return code == MPI_SUCCESS ? MPI_Type_commit(type) : code;
}

/** taccTransport_t.send. */
static inline taccResult_t taccMpiSend(void* context, int peer, uint32_t tag, const void* data, size_t bytes,
                                       void** request) {
  const taccMpiContext_t* self = (const taccMpiContext_t*)context;
  MPI_Request started = MPI_REQUEST_NULL;
  MPI_Datatype type;
  int count;
  int code = taccMpiType(bytes, &count, &type);
  if (code == MPI_SUCCESS) {
    code = MPI_Isend(data, count, type, peer, (int)tag, self->comm, &started);
    if (type != MPI_BYTE) MPI_Type_free(&type);
  }
  memcpy(request, &started, sizeof started);
  return taccMpiResult(code);
}

/** taccTransport_t.receive. */
static inline taccResult_t taccMpiReceive(void* context, int peer, uint32_t tag, void* data, size_t capacity,
                                          void** request) {
  const taccMpiContext_t* self = (const taccMpiContext_t*)context;
  MPI_Request started = MPI_REQUEST_NULL;
  MPI_Datatype type;
  int count;
  int code = taccMpiType(capacity, &count, &type);
  if (code == MPI_SUCCESS) {
    code = MPI_Irecv(data, count, type, peer, (int)tag, self->comm, &started);
    if (type != MPI_BYTE) MPI_Type_free(&type);
  }
  memcpy(request, &started, sizeof started);
  return taccMpiResult(code);
}

/** taccTransport_t.test. */
static inline taccResult_t taccMpiTest(void* context, void** request, int* done, size_t* bytes) {
  MPI_Request tested;
  MPI_Status status;
  MPI_Count elements = 0;
  int isDone = 0;
  int code;
  (void)context;
  memcpy(&tested, request, sizeof tested);
  code = MPI_Test(&tested, &isDone, &status);
  memcpy(request, &tested, sizeof tested);
  if (code == MPI_SUCCESS && isDone) code = MPI_Get_elements_x(&status, MPI_BYTE, &elements);
  if (code != MPI_SUCCESS) return taccMpiResult(code);
  if (isDone) {
    *done = 1;
    *bytes = elements == MPI_UNDEFINED ? 0 : (size_t)elements;
  }
  return taccSuccess;
}

/** taccTransport_t.cancel. */
static inline taccResult_t taccMpiCancel(void* context, void** request) {
  MPI_Request cancelled;
  double start;
  int isDone = 0;
  int code;
  (void)context;
  memcpy(&cancelled, request, sizeof cancelled);
  if (cancelled == MPI_REQUEST_NULL) return taccSuccess;
  code = MPI_Cancel(&cancelled); /* always ends a receive that has not been matched; a send seldom */
  start = MPI_Wtime();
  while (code == MPI_SUCCESS && !isDone && MPI_Wtime() - start < 1.0)
    code = MPI_Test(&cancelled, &isDone, MPI_STATUS_IGNORE);
  return taccMpiResult(code);
}

/** taccTransport_t.destroy. */
static inline void taccMpiDestroy(void* context) {
  taccMpiContext_t* self = (taccMpiContext_t*)context;
  int isOver = 0;
  MPI_Finalized(&isOver);
  if (!isOver) MPI_Comm_free(&self->comm);
  free(self);
}

/** A communicator of the ranks of `comm`, in the same order. Not a duplicate, which would have the attributes, and not
 * a part, for which MPICH and Open MPI wait for ever while an MPI_Comm_idup is under way. Collective over `comm`.
 */
static inline int taccMpiCommOfItsOwn(MPI_Comm comm, MPI_Comm* made) {
  MPI_Group group;
  int code = MPI_Comm_group(comm, &group);
  if (code != MPI_SUCCESS) return code;
  code = MPI_Comm_create(comm, group, made);
  MPI_Group_free(&group);
  return code;
}

/** Fills in *transport over a communicator of its own, so that tacc's messages meet no others; it has none of the
 * attributes of `comm`, so that no callback that copies them is called. Called by all ranks of `comm`, which become the
 * communicator's ranks in the same order. What was filled in is the caller's to destroy.
 */
static inline taccResult_t taccMpiTransport(MPI_Comm comm, taccTransport_t* transport) {
  taccTransport_t table = {
      sizeof(taccTransport_t), TACC_TRANSPORT_VERSION, "mpi", NULL, 0, taccMpiSend, taccMpiReceive, taccMpiTest,
      taccMpiCancel,           taccMpiDestroy};
  int* upperBound = NULL;
  int isKnown = 0;
  taccMpiContext_t* context = (taccMpiContext_t*)malloc(sizeof(taccMpiContext_t));
  if (context == NULL) return taccSystemError;
  if (taccMpiCommOfItsOwn(comm, &context->comm) != MPI_SUCCESS) {
    free(context);
    return taccSystemError;
  }
  MPI_Comm_set_errhandler(context->comm, MPI_ERRORS_RETURN);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void*)&upperBound, &isKnown);
  table.maxTag = isKnown ? (uint32_t)*upperBound : 32767; /* the least that MPI promises */
  table.context = context;
  *transport = table;
  return taccSuccess;
}

#ifdef __cplusplus
}
#endif

#endif
