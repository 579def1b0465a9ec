/** tacc: how a program brings its own way to move bytes between hosts.
 *
 * tacc moves messages between hosts through UCX or libfabric by itself. Where a program has something else that works,
 * its MPI for example (tacc/mpi_transport.h), it hands tacc a table of functions. Everything here is plain C.
 *
 * What tacc promises
 *  - The functions of one table are called by one thread at a time, not always the same one.
 *  - `peer` is a rank of the communicator that the table was given to, and never the caller's own.
 *  - A tag is from 0 to maxTag. Two messages from one rank to another that are under way at the same time have
 *    different tags; tags are used again later.
 *  - Data stays in place, and what is sent unchanged, until `test` has said that the request is done or `cancel` has
 *    returned. Every request ends with one of the two.
 *  - `destroy` is the last call, and no request is under way then.
 *
 * What the functions promise
 *  - None of them waits for another rank (`cancel` and `destroy` may for about a second). Messages move during any
 * call.
 *  - taccSuccess, taccRemoteError (the peer is gone) or taccSystemError; `test` also taccInvalidUsage for a message
 * that was longer than its receive. After an error only `cancel` and `destroy` are called.
 *  - Nothing is thrown and nothing jumps.
 * @file */
#ifndef TACC_TRANSPORT_H
#define TACC_TRANSPORT_H

#include "tacc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TACC_TRANSPORT_VERSION 1 /**< of this table */

/** The table: who fills it in keeps what stands above. */
typedef struct taccTransport {
  size_t size;      /**< sizeof(taccTransport_t) where it was filled in */
  int version;      /**< TACC_TRANSPORT_VERSION */
  const char* name; /**< for messages, e.g. "mpi"; lives as long as the table is in use */
  void* context;    /**< the first argument of every function */
  uint32_t maxTag;  /**< the largest tag; at least 32767 */

  /** Starts to send `bytes` bytes (0 is fine). *request is the function's own: any value that names this message. */
  taccResult_t (*send)(void* context, int peer, uint32_t tag, const void* data, size_t bytes, void** request);
  /** Starts to receive the message of that peer and tag, of at most `capacity` bytes. It may have come already. */
  taccResult_t (*receive)(void* context, int peer, uint32_t tag, void* data, size_t capacity, void** request);
  /** *done: 1 when the message has been received, or when the data of a send may be changed; the request is then no
   * more. *bytes: of a message that was received. */
  taccResult_t (*test)(void* context, void** request, int* done, size_t* bytes);
  /** Gives a request up; the message may still be delivered. When it returns, the memory of a receive is not written
   * any more. */
  taccResult_t (*cancel)(void* context, void** request);
  /** Ends the use of the table and frees the context. May be null. */
  void (*destroy)(void* context);
} taccTransport_t; /**< the same, by a shorter name */

#ifdef __cplusplus
}
#endif

#endif
