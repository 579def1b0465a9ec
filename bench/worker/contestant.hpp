#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "tacc/tacc.h"
#include "worker/messages.hpp"

namespace tacc::bench {

/// One call of a collective. Small, because making it is part of what is timed.
struct Call {
  const Task* task = nullptr;
  int variant = 0;
  const void* send = nullptr;
  void* recv = nullptr;
};

/// One rank of a library that takes part: tacc itself, a peer, the memory bound. All of them are driven by the same
/// Worker with the same buffers, inputs and checks. Errors are thrown as std::exception with a message that says what
/// the library said.
class Contestant {
 public:
  virtual ~Contestant() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// On rank 0: what the other ranks must know to join, "" if nothing.
  virtual std::string secret() { return ""; }
  /// Forms the communicator, with the secret of rank 0.
  virtual void join(const std::string& secret) = 0;

  /// What rank 0 gives, on all ranks, by means of the library itself, which must not need join() for that.
  virtual std::string share(const std::string& word);

  /// Buffers for sending or receiving, zeroed and touched. All contestants use private memory, on huge pages where the
  /// kernel grants them or on small ones only, unless their own allocation is the point.
  virtual void* allocate(size_t bytes, bool smallPages);
  virtual void release(void* buffer, size_t bytes);

  /// In how many ways the library can be asked to do `task`; the coordinator times each and keeps the fastest. 0: the
  /// library does not offer it.
  virtual int variants(const Task& task) const = 0;

  /// Runs the call to its end; or lets it begin, and finish() waits for all that have begun.
  virtual void run(const Call& call) = 0;
  virtual void finish() {}
  /// The calls between these two may run together.
  virtual void beginGroup() {}
  virtual void endGroup() {}
  /// Returns when all ranks have entered it.
  virtual void barrier() = 0;

  /// Name of the algorithm that the last call ran; "" if the library does not tell. Without spaces.
  virtual std::string algorithm(const Call& last) const;
  /// Processor time that this rank has used, threads of its library included, in seconds.
  virtual double cpuSeconds() const;

  /// False if run() does not compute the collective's result (the memory bound).
  virtual bool computesResult() const { return true; }
};

}  // namespace tacc::bench
