/** tacc: the Topology-Aware Collective Communication library. Public C interface.
 *
 * Shaped after NCCL's interface: a program written for NCCL ports by replacing the prefix, with host memory in the
 * place of device memory. Everything here is plain C; no exception crosses it.
 *
 * Conventions that hold for every function below
 *  - Returns taccSuccess or an error. Output parameters are written on success only.
 *  - After an error taccGetLastError() has a sentence that names what was wrong, where, and what would be right.
 *  - Counts are in elements, never in bytes, unless the name says bytes.
 *  - A communicator is used by one thread at a time. Different communicators may be used by different threads at once;
 *    taccCommAbort, taccCommGetAsyncError and taccGetLastError may be called from any thread at any time.
 *  - The library owns handles; the caller owns buffers and keeps them alive and untouched until the call (null stream)
 *    or the stream's work (any other stream) is complete.
 * @file */
#ifndef TACC_TACC_H
#define TACC_TACC_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------ about the library */

/** Version of the library that runs, coded as TACC_VERSION_CODE. */
TACC_API taccResult_t taccGetVersion(int* version);

/** Short fixed text for a result, e.g. "invalid argument". Never NULL. */
TACC_API const char* taccGetErrorString(taccResult_t result);

/** The full message of the last error: of this communicator, or with comm == NULL of the calling thread. "" when there
 * was none. Valid until the next tacc call on that communicator (or in that thread). */
TACC_API const char* taccGetLastError(taccComm_t comm);

/* --------------------------------------------------------------------------------------------------- communicators */

/** A new id, made by one process of the job, best by the one that becomes rank 0: it names the host where it was made
 * as rank 0's, and its maker keeps the TCP port in it free for rank 0 (the last 64 ids' ports, while the process
 * lives). */
TACC_API taccResult_t taccGetUniqueId(taccUniqueId* uniqueId);

/** Joins the communicator `commId` of `nranks` ranks as `rank`. Blocks until all have joined or the init time-out ends,
 * unless the configuration says otherwise (taccConfig_t.blocking).
 * Errors: rank not in [0, nranks), a rank taken twice, ranks that disagree on nranks or on the library's version. */
TACC_API taccResult_t taccCommInitRank(taccComm_t* comm, int nranks, taccUniqueId commId, int rank);
TACC_API taccResult_t taccCommInitRankConfig(taccComm_t* comm, int nranks, taccUniqueId commId, int rank,
                                             const taccConfig_t* config); /**< as above; `config` NULL: the defaults */

/** Joins the communicator of all processes that a launcher started: rank and size come from its environment, and so
 * does the place where the ranks meet. Known are torchrun (and whatever sets RANK, WORLD_SIZE, MASTER_ADDR and
 * MASTER_PORT), Open MPI's mpirun, Hydra's mpiexec (MPICH, Intel MPI), Slurm's srun, jsrun, mpirun_rsh, PALS, and PMI.
 * TACC_RENDEZVOUS=HOST:PORT, the same on all ranks, names rank 0's host where the launcher does not. Collective over
 * the job: the n-th call of every process joins the same communicator, so call it from one thread at a time. `config`
 * NULL: the defaults. Errors: taccInvalidUsage with what was looked for and what was found. */
TACC_API taccResult_t taccCommInitEnv(taccComm_t* comm, const taccConfig_t* config);

/** Which process of a job this one is, as taccCommInitEnv reads it: the launcher's name ("Hydra", "Slurm"), rank and
 * number of ranks. *launcher is NULL, *rank 0 and *nranks 1 where no launcher that tacc knows started it. rank and
 * nranks may be NULL. Local; the name is never freed. Error: taccInvalidUsage where the launcher's variables are not
 * complete. */
TACC_API taccResult_t taccGetLaunch(const char** launcher, int* rank, int* nranks);

/** Makes all `ndev` ranks of a communicator in this process, for use by threads: comms[i] is rank i. Ranks read each
 * other's buffers directly. `devlist` is ignored (NULL is fine); it is there for programs ported from NCCL. */
TACC_API taccResult_t taccCommInitAll(taccComm_t* comms, int ndev, const int* devlist);

#define TACC_SPLIT_NOCOLOR (-1) /**< the color of a rank that joins no part */
/** Splits `comm`: ranks of one `color` (>= 0) form a new communicator, ordered by `key`, then by rank. Collective over
 * `comm`. A rank with TACC_SPLIT_NOCOLOR gets *newcomm = NULL. `config` NULL: comm's own. */
TACC_API taccResult_t taccCommSplit(taccComm_t comm, int color, int key, taccComm_t* newcomm,
                                    const taccConfig_t* config);
/** Makes a communicator of `nranks` ranks of `comm`: ranks[i] becomes rank i. Collective over these ranks alone, as
 * MPI_Comm_create_group: each gives the same list, and the others do not call. The ranks talk by messages of `comm`, in
 * turn with its sends and receives; in a group that is open (taccGroupStart) communicators are made one after the
 * other, in the order of the calls, before its sends and receives. `config` NULL: comm's own. Errors: a rank that is
 * not in [0, ranks of comm) or twice in the list, or a list without the caller (taccInvalidArgument); lists with the
 * same lowest rank that differ, also in their order (taccInvalidUsage). After the latter, or where a rank fails, `comm`
 * has failed, too. A rank of the list that does not call is waited for, as one that misses a collective. */
TACC_API taccResult_t taccCommCreateGroup(taccComm_t comm, const int* ranks, int nranks, taccComm_t* newcomm,
                                          const taccConfig_t* config);

/** Waits for all work given to the communicator's streams; after it only Destroy and the queries are allowed. */
TACC_API taccResult_t taccCommFinalize(taccComm_t comm);
/** Frees the communicator (finalizes it first if that was not done). Inside a host it does not wait for other ranks.
 * Between hosts it waits until they destroy theirs or fail, 10 s at most: what this rank sent last may be under way. */
TACC_API taccResult_t taccCommDestroy(taccComm_t comm);
/** Ends the communicator without waiting: calls blocked in it, on all ranks, return taccRemoteError; so do the init
 * calls of the others while this one still joins. Frees the handle once the calls of this process that are inside it
 * have returned: a call of the same thread too, one of whose functions (of a reduction, or idle) calls this. */
TACC_API taccResult_t taccCommAbort(taccComm_t comm);

/** Makes every call on the communicator, on all ranks, end with taccRemoteError, now and later, without freeing the
 * handle: a rank that has seen a failure tells the others so. Then all may shrink it. Thread safe, not collective. */
TACC_API taccResult_t taccCommRevoke(taccComm_t comm);
/** A communicator of the ranks that are left, in their order, after some have died, or to leave some out. Collective
 * over those that are left; works on a communicator that has failed. Ranks in excludeRanksList (excludeRanksCount of
 * them, equal on all; NULL and 0: none) are left out even if they live and must not call. `config` NULL: comm's own.
 * shrinkFlags: 0. The old communicator stays, to be destroyed.
 *
 * The agreement is uniform (as MPIX_Comm_shrink of ULFM): all ranks that get taccSuccess have the same members,
 * whatever dies meanwhile. A rank that neither calls nor has ended, or cannot be reached, is waited for (until shortly
 * before the init time-out; 3 s when its host does not answer), then left out, if those who came are more than half of
 * all ranks that are not excluded, or half of them with the lowest; else all get taccTimeout. Ranks that are known to
 * have ended need no majority to go on without. taccCommAbort from another thread ends it. Errors: taccTimeout;
 * taccRemoteError: the others have gone on without this rank, or one of them could not join; taccInvalidUsage: ranks
 * exclude different ones, or are ranks of taccCommInitAll, which end together. */
TACC_API taccResult_t taccCommShrink(taccComm_t comm, const int* excludeRanksList, int excludeRanksCount,
                                     taccComm_t* newcomm, const taccConfig_t* config, int shrinkFlags);

/** Agrees on *flags, also after a failure: sets them to the bitwise and of the flags of all ranks that take part, the
 * same on all ranks that return, whatever dies meanwhile (as MPIX_Comm_agree of ULFM). Collective over the ranks that
 * live; waits for them as taccCommShrink does. taccSuccess: all ranks of the communicator took part. taccRemoteError:
 * some did not, on all ranks alike; *flags are set all the same, and taccGetLastError names who was missing. With any
 * other error *flags stay as they were. One call at a time on a communicator; not inside a group. Takes a few round
 * trips over sockets, so it is for moments after a failure, not for every step. */
TACC_API taccResult_t taccCommAgree(taccComm_t comm, int* flags);

/** taccSuccess in *asyncError while the communicator is usable, taccInProgress while it still joins (see
 * taccConfig_t.blocking), else the error that ended it. */
TACC_API taccResult_t taccCommGetAsyncError(taccComm_t comm, taccResult_t* asyncError);
TACC_API taccResult_t taccCommCount(taccComm_t comm, int* count);   /**< number of ranks */
TACC_API taccResult_t taccCommUserRank(taccComm_t comm, int* rank); /**< of the caller */

/** Where a rank stands in the machine. */
typedef struct {
  size_t size;                     /**< sizeof(taccNodeInfo_t) as compiled in the program: set by the program */
  int host, hosts;                 /**< number of its host among those of the communicator */
  int localRank, localRanks;       /**< among the ranks of its host, which share memory */
  int networkGroup, networkGroups; /**< of the topology's lowest level above the hosts (a leaf switch, a supernode); 0
                                      of 1 where the topology has none */
  int numaDomain; /**< of its host, as the kernel numbers them: the first in which the calling thread may run now */
} taccNodeInfo_t;
/** Of this rank. Local; from any thread. Ranks with equal `host` share their host. */
TACC_API taccResult_t taccCommGetNodeInfo(taccComm_t comm, taccNodeInfo_t* info);

/** What a communicator is, for logs and reports. Texts that are too long are cut. */
typedef struct {
  size_t size;               /**< sizeof(taccCommInfo_t) as compiled in the program: set by the program */
  int rank, ranks;           /**< this rank and how many there are */
  int host, hosts;           /**< number of this rank's host among those of the communicator */
  int localRank, localRanks; /**< among the ranks of its host */
  char hostName[256];        /**< of this rank, as uname says it */
  char name[128];            /**< taccConfig_t.name; "": none */
  char transport[32]; /**< what carries messages between its hosts ("tcp", "ucx", "ofi", "mpi"); "shm" on one host */
  uint64_t topologyDigest; /**< of where its hosts stand in the network, equal on all ranks; 0 on one host */
} taccCommInfo_t;
/** Local; from any thread. */
TACC_API taccResult_t taccCommGetInfo(taccComm_t comm, taccCommInfo_t* info);

/* ------------------------------------------------------------------------------------------------------------ memory
 */

/** Library memory: other ranks of the node map it, so collectives on it need no copy. Zeroed, aligned to 4096 bytes.
 * Needs no communicator. Thread safe. */
TACC_API taccResult_t taccMemAlloc(void** ptr, size_t bytes);
/** The same, for allocators: pages are taken from the system when they are first touched, near the thread that does so,
 * as malloc's are. So memory that runs out is noticed only then, and ends the process. Thread safe. */
TACC_API taccResult_t taccMemReserve(void** ptr, size_t bytes);
/** Of either: from now on ordinary memory, contents kept: nobody else reaches it, children made by fork() get copies. A
 * page is copied when it is next stored to; taccMemFree frees both. Other threads may go on using it. taccInvalidUsage,
 * and nothing is changed, while an operation has its output there. Thread safe. */
TACC_API taccResult_t taccMemUnshare(void* ptr);
/** No operation may be using it. NULL is ignored. */
TACC_API taccResult_t taccMemFree(void* ptr);

/** Makes ordinary memory as good as library memory: the whole pages inside [buffer, buffer + bytes) become shared pages
 * in place, contents kept, so a page-aligned buffer needs no copy in later collectives. No other thread may touch the
 * buffer during the call, and children made by fork() share these pages from then on. Library memory, memory of thread
 * ranks and memory that cannot be shared (files, stacks) stay as they are. Local, not collective. *handle is for
 * taccCommDeregister, which makes the pages private again and must come before the buffer is freed. */
TACC_API taccResult_t taccCommRegister(taccComm_t comm, void* buffer, size_t bytes, void** handle);
TACC_API taccResult_t taccCommDeregister(taccComm_t comm, void* handle); /**< ends taccCommRegister */

/* ----------------------------------------------------------------------------------------------------------- streams
 */

/** A stream runs what is given to it in order, in a separate thread, which takes none of the program's signals but its
 * own faults. Calls on one communicator run in the order in which they were made, whatever streams they were given to.
 */
TACC_API taccResult_t taccStreamCreate(taccStream_t* stream);
/** Waits for the stream's work, then frees it. */
TACC_API taccResult_t taccStreamDestroy(taccStream_t stream);
/** taccSuccess: all done; taccInProgress: not yet; else the first error of the stream's work. */
TACC_API taccResult_t taccStreamQuery(taccStream_t stream);
/** Waits for all work given so far; returns its first error, which is then cleared. */
TACC_API taccResult_t taccStreamSynchronize(taccStream_t stream);

/* --------------------------------------------------------------------------------------------- requests and events
 * Calls given to a stream go on by themselves, in the stream's thread, which sleeps while it waits for other ranks. A
 * request tells of one call whether it is done and how it went; it can be cancelled only by taccCommAbort. An event is
 * a place in a stream: it is reached when all that the stream was given before has ended, well or not. It orders
 * streams and tells of no error. All of these may be called from any thread; how communicators end (abort, death,
 * time-out) ends their calls, and so every wait here. */

typedef struct taccRequest* taccRequest_t; /**< one call that was given to a stream */
typedef struct taccEvent* taccEvent_t;     /**< a place in a stream */

/** A request for the call that `stream` was given last; what a group gave it counts as one call. The program destroys
 * it. Not while the open group of this thread has calls on the stream. taccInvalidUsage: it was given none yet. */
TACC_API taccResult_t taccStreamRequest(taccStream_t stream, taccRequest_t* request);
/** taccSuccess: done, and its buffers are the program's again; taccInProgress: not yet; else its error, as often as
 * this is asked. */
TACC_API taccResult_t taccRequestTest(taccRequest_t request);
/** Waits for the call and returns how it went, as taccRequestTest. Sleeps, at the cost of no core. */
TACC_API taccResult_t taccRequestWait(taccRequest_t request);
/** The same for `seconds` at most: taccInProgress where that was not enough. */
TACC_API taccResult_t taccRequestWaitFor(taccRequest_t request, double seconds);
/** Frees the request. The call goes on: its buffers are in use until the stream says that it is done. */
TACC_API taccResult_t taccRequestDestroy(taccRequest_t request);

/** An event that counts as reached until it is recorded. */
TACC_API taccResult_t taccEventCreate(taccEvent_t* event);
/** From now on the event is the place behind all that `stream` has been given. NULL: reached at once, as calls on the
 * null stream are done when they return. Not while the open group of this thread has calls on the stream. */
TACC_API taccResult_t taccEventRecord(taccEvent_t event, taccStream_t stream);
/** taccSuccess: reached; taccInProgress: not yet. */
TACC_API taccResult_t taccEventQuery(taccEvent_t event);
/** Waits until it is reached, as it was recorded when this was called. */
TACC_API taccResult_t taccEventSynchronize(taccEvent_t event);
/** Frees the event. What waits for it goes on waiting for the place. */
TACC_API taccResult_t taccEventDestroy(taccEvent_t event);
/** What `stream` is given from now on begins when `event` is reached, as it was recorded when this was called. NULL:
 * this thread waits. Does not wait for a group that is open to end: calls of that come later. */
TACC_API taccResult_t taccStreamWaitEvent(taccStream_t stream, taccEvent_t event);

/* ------------------------------------------------------------------------------------------------------- collectives
 * Every rank of the communicator makes the same call with the same count, type, op and root, in the same order. A
 * difference is taccInvalidUsage with a message that shows both calls; the communicator is then ended. sendbuff and
 * recvbuff must not overlap except in place, as said at each. A count of zero is valid and moves nothing. */

/** recvbuff[i] = op over ranks of sendbuff[i], on all ranks. In place: sendbuff == recvbuff. */
TACC_API taccResult_t taccAllReduce(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype,
                                    taccRedOp_t op, taccComm_t comm, taccStream_t stream);
/** recvbuff on all ranks = sendbuff of root. sendbuff is read on root only. In place: sendbuff == recvbuff. */
TACC_API taccResult_t taccBroadcast(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype,
                                    int root, taccComm_t comm, taccStream_t stream);
/** Broadcast in place. */
TACC_API taccResult_t taccBcast(void* buff, size_t count, taccDataType_t datatype, int root, taccComm_t comm,
                                taccStream_t stream);
/** recvbuff on root = op over ranks of sendbuff. recvbuff is used on root only. In place on root: sendbuff == recvbuff.
 */
TACC_API taccResult_t taccReduce(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype,
                                 taccRedOp_t op, int root, taccComm_t comm, taccStream_t stream);
/** recvbuff[r * sendcount + i] = rank r's sendbuff[i], on all ranks. In place: sendbuff == recvbuff + rank * sendcount.
 */
TACC_API taccResult_t taccAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, taccDataType_t datatype,
                                    taccComm_t comm, taccStream_t stream);
/** recvbuff[i] on rank r = op over ranks of sendbuff[r * recvcount + i]. In place: recvbuff == sendbuff + rank *
 * recvcount. */
TACC_API taccResult_t taccReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, taccDataType_t datatype,
                                        taccRedOp_t op, taccComm_t comm, taccStream_t stream);
/** recvbuff[r * count + i] on rank q = sendbuff[q * count + i] of rank r. In place: sendbuff == recvbuff. */
TACC_API taccResult_t taccAllToAll(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype,
                                   taccComm_t comm, taccStream_t stream);
/** recvbuff[r * count + i] on root = rank r's sendbuff[i]. In place on root: sendbuff == recvbuff + root * count. */
TACC_API taccResult_t taccGather(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, int root,
                                 taccComm_t comm, taccStream_t stream);
/** recvbuff[i] on rank r = root's sendbuff[r * count + i]. In place on root: recvbuff == sendbuff + root * count. */
TACC_API taccResult_t taccScatter(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype, int root,
                                  taccComm_t comm, taccStream_t stream);
/** recvbuff[i] on rank r = op over ranks 0 to r of sendbuff[i]. Not with taccAvg. In place: sendbuff == recvbuff. */
TACC_API taccResult_t taccScan(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype,
                               taccRedOp_t op, taccComm_t comm, taccStream_t stream);
/** The same of ranks 0 to r - 1; recvbuff of rank 0 stays as it is. */
TACC_API taccResult_t taccExscan(const void* sendbuff, void* recvbuff, size_t count, taccDataType_t datatype,
                                 taccRedOp_t op, taccComm_t comm, taccStream_t stream);
/** Returns when all ranks have entered it. */
TACC_API taccResult_t taccBarrier(taccComm_t comm, taccStream_t stream);

/* ------------------------------------------------------------------------------------- blocks of unequal lengths
 * As the collectives above, with a count for each rank. Arrays have an element for each rank of the communicator, are
 * read before the call returns, and may be in the stack. `displs`: where each block begins in its buffer, in elements,
 * which ranks need not have alike; NULL: one behind the other, without gaps. Blocks of a buffer that is written must
 * not overlap. What one rank gives another must be what that expects: a difference is taccInvalidUsage with a message
 * that names both ranks and both counts, on all ranks of a host that wait for it; others may be in a later call. */

/** recvbuff[displs[r] + i] = rank r's sendbuff[i] for i < recvcounts[r], on all ranks; this rank sends
 * recvcounts[rank]. In place: sendbuff == recvbuff + displs[rank]. */
TACC_API taccResult_t taccAllGatherV(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                     const size_t* displs, taccDataType_t datatype, taccComm_t comm,
                                     taccStream_t stream);
/** recvbuff[i] on rank r = op over ranks of sendbuff[displs[r] + i] for i < recvcounts[r]. In place:
 * recvbuff == sendbuff + displs[rank]. */
TACC_API taccResult_t taccReduceScatterV(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                         const size_t* displs, taccDataType_t datatype, taccRedOp_t op, taccComm_t comm,
                                         taccStream_t stream);
/** recvbuff[displs[r] + i] on root = rank r's sendbuff[i] for i < recvcounts[r], which is rank r's sendcount. recvbuff,
 * recvcounts and displs are used on root only. In place on root: sendbuff == recvbuff + displs[root]. */
TACC_API taccResult_t taccGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                                  const size_t* displs, taccDataType_t datatype, int root, taccComm_t comm,
                                  taccStream_t stream);
/** recvbuff[i] on rank r = root's sendbuff[displs[r] + i] for i < sendcounts[r], which is rank r's recvcount. sendbuff,
 * sendcounts and displs are used on root only. In place on root: recvbuff == sendbuff + displs[root]. */
TACC_API taccResult_t taccScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* displs, void* recvbuff,
                                   size_t recvcount, taccDataType_t datatype, int root, taccComm_t comm,
                                   taccStream_t stream);
/** recvbuff[recvdispls[r] + i] on rank q = sendbuff[senddispls[q] + i] of rank r for i < recvcounts[r], which is rank
 * r's sendcounts[q]. In place: sendbuff == recvbuff, with equal counts and displacements. */
TACC_API taccResult_t taccAllToAllV(const void* sendbuff, const size_t* sendcounts, const size_t* senddispls,
                                    void* recvbuff, const size_t* recvcounts, const size_t* recvdispls,
                                    taccDataType_t datatype, taccComm_t comm, taccStream_t stream);

/* ---------------------------------------------------------------------------------------------------- point to point
 * The n-th send from a to b meets the n-th receive at b from a; counts and types must agree. A receive returns when the
 * data has arrived; a send when sendbuff may be written again, which may be before the receiver has come, but need not
 * be: no program may rely on either. Inside a group all run together, which is how ranks exchange without deadlock. */
TACC_API taccResult_t taccSend(const void* sendbuff, size_t count, taccDataType_t datatype, int peer, taccComm_t comm,
                               taccStream_t stream); /**< to rank `peer` */
TACC_API taccResult_t taccRecv(void* recvbuff, size_t count, taccDataType_t datatype, int peer, taccComm_t comm,
                               taccStream_t stream); /**< from rank `peer` */

/** Calls of this thread between Start and End are checked at once and run at End: sends and receives together, small
 * allreduces of one communicator, type and operation as one, calls on different communicators at the same time. Which
 * streams they are given to changes none of that: what runs as one runs behind all that its streams were given before.
 * Small allreduces of which one writes what the next reads or writes keep their order; they do so on all ranks alike.
 * Groups nest; the outermost End runs. A call that fails its check is reported by the call and again by End, which then
 * runs nothing. */
TACC_API taccResult_t taccGroupStart(void);
TACC_API taccResult_t taccGroupEnd(void); /**< ends what taccGroupStart began */

/* ------------------------------------------------------------------------------------------------- gradient buckets
 * Many small allreduces, such as a network's gradients, as few larger ones. Tensors are added as they become ready, in
 * training in backward order; those of one type and operation are packed until a bucket is full, and then reduced on
 * the bucket's stream while the program computes on. Tensors that are large enough by themselves go alone, without a
 * copy. All ranks add the same tensors in the same order; a difference is taccInvalidUsage, as for any collective. */
typedef struct taccBucket* taccBucket_t; /**< gradients that are gathered for fewer calls */

/** `bytes`: of a full bucket; 0: chosen from the network's latency and bandwidth, as small as the latency allows, since
 * the last bucket's time cannot be hidden (docs/understand/dynamic.md). `stream` NULL: a bucket is reduced in the call
 * that fills it. The communicator and the stream must live longer than the bucket. */
TACC_API taccResult_t taccBucketCreate(taccBucket_t* bucket, taccComm_t comm, taccStream_t stream, size_t bytes);
/** buffer[i] = op over ranks of buffer[i], some time between this call and the stream's synchronization after
 * taccBucketFlush; until then the program leaves it alone. Not inside a group. */
TACC_API taccResult_t taccBucketAdd(taccBucket_t bucket, void* buffer, size_t count, taccDataType_t datatype,
                                    taccRedOp_t op);
/** Gives what was added to the stream, full or not: after the last tensor of a step. */
TACC_API taccResult_t taccBucketFlush(taccBucket_t bucket);
/** Bytes of a full bucket. */
TACC_API taccResult_t taccBucketBytes(taccBucket_t bucket, size_t* bytes);
/** Flushes and frees the bucket. After an error of the communicator it only frees. NULL is ignored. */
TACC_API taccResult_t taccBucketDestroy(taccBucket_t bucket);

/** An operator that multiplies every rank's input by that rank's own *scalar (of `datatype`) and sums. Local to `comm`;
 * use it with `datatype` only, and create it on all ranks in the same order. */
TACC_API taccResult_t taccRedOpCreatePreMulSum(taccRedOp_t* op, void* scalar, taccDataType_t datatype,
                                               taccScalarResidence_t residence, taccComm_t comm);

/** A reduction of the program: accumulated[i] = accumulated[i] op next[i] for `count` elements that do not overlap.
 * `context` is what the operator was made with. It is called by the thread that makes the call (of a stream: by the
 * stream's), on parts of the vectors in any order, must not throw, and must not call tacc. */
typedef void (*taccReductionFunction)(void* accumulated, const void* next, size_t count, taccDataType_t datatype,
                                      void* context);
/** An operator that is such a function: associative, and the same on all ranks. `commutative` 0: contributions are
 * combined in the order of the ranks, (x0 op x1) op x2 ..., which between hosts costs bytes as a reproducible reduction
 * does. Local to `comm`; create it on all ranks in the same order. Elements of 16-bit types come as they are. */
TACC_API taccResult_t taccRedOpCreateUser(taccRedOp_t* op, taccReductionFunction function, void* context,
                                          int commutative, taccComm_t comm);
TACC_API taccResult_t taccRedOpDestroy(taccRedOp_t op, taccComm_t comm); /**< of either kind */

/** Name of the algorithm that the last collective on `comm` ran, e.g. "twoshot"; "" before the first. Valid until the
 * next call on the communicator. */
TACC_API const char* taccCommLastAlgorithm(taccComm_t comm);

/** Why a collective of `bytes` bytes (as in taccCommLastAlgorithm's call: of the vector, or of one rank's block) would
 * run as it does: a readable text, with the levels of the topology or of the host, and a line for each candidate with
 * its predicted time, the chosen one first (docs/understand/cost_model.md). `collective`: "allreduce", "broadcast",
 * "reduce", "allgather", "reducescatter", "alltoall", "gather", "scatter", "scan" or "exscan". Local: no other rank has
 * to call. NULL for a bad argument (taccGetLastError tells); else valid until the next taccExplain on the communicator.
 */
TACC_API const char* taccExplain(taccComm_t comm, const char* collective, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
