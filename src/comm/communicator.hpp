// One rank's end of a communicator: members, the shared segment or threads between them, the plan cache and the calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/short_calls.hpp"
#include "core/call.hpp"
#include "core/error.hpp"
#include "core/idle_call.hpp"
#include "selection/bucket_size.hpp"
#include "tacc/tacc.h"

namespace tacc {

class NetworkTransport;
class PluginTable;
struct DirectUpdate;
class Topology;

/// Connections of a communicator that another one is split off, which may share them.
struct LentConnections {
  NetworkTransport* transport;  // while the other one joins
  std::string name;             // of its kind
  std::string settings;         // that it was chosen by
  std::vector<int> ranks;       // by rank of the other one: its rank here
};

/// Options of a communicator after checking (see taccConfig_t).
struct CommConfig {
  double initTimeout = 120.0;
  double operationTimeout = 600.0;
  bool isBlocking = true;        // joining returns when all have joined; see api/joining.hpp
  bool isReproducible = false;   // floating-point reductions in the order of the ranks
  std::string algorithm;         // forced; empty: chosen
  bool isAlgorithmWish = false;  // TACC_ALGO named it: forced where it serves the collective
  std::string name;
  bool isPart = false;                          // split off another communicator, or what is left of it
  IdleCallback idle;                            // of the program, for calls that wait
  bool halfPartialSums = false;                 // of 16-bit types travel between hosts as 16 bits
  bool dynamic = true;                          // times of calls correct what is chosen between hosts
  std::shared_ptr<const Topology> topology;     // of a communicator that this one is split off; null: none
  bool surveysAnew = false;                     // the network is measured, whatever an earlier job has kept of it
  std::shared_ptr<const LentConnections> lent;  // null: none, and in communicators that stand; alike on all ranks
  std::shared_ptr<PluginTable> transport;       // that the program brought; null: none, and in communicators that stand
};

/// Where a rank stands in the machine.
struct Standing {
  int host = 0, hosts = 1;                  // number of its host among those of the communicator
  int localRank = 0, localRanks = 1;        // among the ranks of its host
  int networkGroup = 0, networkGroups = 1;  // of the topology's lowest level above the hosts: a leaf, a supernode
  int numaDomain = 0;                       // of its host, where it may run when this is asked
};

class Communicator {
 public:
  /// Joins over the host's rendezvous; blocks until all ranks came, or until `stop` is requested: then it throws
  /// taccRemoteError, on all ranks. `idleWork` is called again and again while this rank waits; what it throws ends the
  /// joining. `isHeardElsewhere`: as in BootstrapOptions.
  static std::unique_ptr<Communicator> join(const taccUniqueId& id, int ranks, int rank, const CommConfig& config,
                                            const std::stop_token& stop = {},
                                            const std::function<void()>& idleWork = {}, bool isHeardElsewhere = false);
  /// All ranks in this process, for threads.
  static std::vector<std::unique_ptr<Communicator>> makeThreads(int ranks, const CommConfig& config);

  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  const CommConfig& config() const noexcept { return config_; }

  /// Runs one collective in the calling thread to its end. After an Error the communicator is unusable.
  virtual void run(const Call& call) = 0;
  /// Those that repeat() runs, noted by run(). Nobody else may be in run().
  const ShortCalls& shortCalls() const noexcept { return shortCalls_; }
  /// run() of a call as the one that was noted last of `collective`, with these buffers. A communicator that notes
  /// calls has to have it.
  virtual void repeat(Collective collective, const void* send, void* receive) {
    (void)send, (void)receive;
    fail(taccInternalError, "{} is repeated, and nothing is known of it", nameOf(collective));
  }
  /// Collective, like run(). False, on all ranks, where some cannot reach the memory of others: nothing was done then.
  virtual bool updateDirectly(const DirectUpdate& update) {
    (void)update;
    return false;
  }
  /// Runs sends and receives together in the calling thread to their end.
  virtual void exchange(std::span<const PointToPoint> operations) = 0;
  /// Collective. Null for a negative color.
  virtual std::unique_ptr<Communicator> split(int color, int key, const CommConfig& config) = 0;
  /// Collective over `members` alone, who say the same; this rank is one of them.
  virtual std::unique_ptr<Communicator> makeGroup(std::span<const int> members, const CommConfig& config) = 0;

  /// A communicator of those that are left, also after an Error. Collective over the survivors; `excluded` ranks are
  /// left out even if they live. Throws taccInvalidUsage among threads, which end together.
  virtual std::unique_ptr<Communicator> shrink(std::span<const int> excluded, const CommConfig& config) = 0;

  /// What the ranks that are left agree on, also after an Error. Collective over those that live; the same on all.
  struct Agreed {
    std::uint32_t flags;    // bitwise and
    std::vector<int> lost;  // ranks that took no part
  };
  virtual Agreed agree(std::uint32_t flags) = 0;
  /// From any thread: a shrink() or agree() that is under way, or begins later, ends with taccRemoteError.
  virtual void endRecovery() noexcept = 0;

  /// From any thread: makes every blocked call on every rank end with taccRemoteError. `why` goes into their messages.
  virtual void abort(const std::string& why) noexcept = 0;
  /// From any thread: this rank cannot go on. Ends every blocked call on every rank, here with `error`, elsewhere with
  /// a taccRemoteError that names this rank. Needs no memory. After the first failure it does nothing.
  virtual void failWith(const Error& error) noexcept = 0;
  /// From any thread: taccSuccess while usable.
  virtual taccResult_t asyncError() const noexcept = 0;

  /// How allreduces of `stepBytes` in all are best put together; equal on all ranks. From any thread.
  virtual BucketSizes bucketSizes(std::size_t stepBytes) {
    (void)stepBytes;
    return {};
  }

  /// Library memory that will be used often: prepares what can be. Local.
  virtual void registerBuffer(void* buffer, std::size_t bytes) = 0;
  virtual void deregisterBuffer(void* buffer) = 0;

  /// Where its hosts stand in the network; equal on all ranks. Null on one host.
  virtual std::shared_ptr<const Topology> topology() const { return nullptr; }
  /// What carries its messages between hosts, e.g. "tcp"; empty on one host.
  virtual std::string transportName() const { return ""; }
  /// Local.
  virtual Standing standing() const { return {}; }
  /// Name of the algorithm that the last call ran; for the bench and the tests.
  virtual std::string lastAlgorithm() const = 0;
  /// Why a call of `bytes` would run as it does; lines of text. Local.
  virtual std::string explain(Collective collective, std::size_t bytes) = 0;

 protected:
  Communicator(int rank, int ranks, CommConfig config) : rank_(rank), ranks_(ranks), config_(std::move(config)) {}

  void noteShortCall(const Call& call) noexcept { shortCalls_.note(call); }
  /// When they would run otherwise.
  void forgetShortCalls() noexcept { shortCalls_.forget(); }

 private:
  int rank_;
  int ranks_;
  CommConfig config_;
  ShortCalls shortCalls_;
};

}  // namespace tacc
