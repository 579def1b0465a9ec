// A center as its workers see it: numbers that they move one after the other, without waiting for each other
// (tacc/center.h). Where they are, in memory that this process maps or at the other end of a connection, does not show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "tacc/tacc.h"

namespace tacc {

struct CenterCounts {
  std::uint64_t updates = 0;     // whole exchanges of all workers
  std::uint64_t ownUpdates = 0;  // of this object
  std::uint64_t bytes = 0;       // of numbers that this object gave and took
  std::uint64_t inherited = 0;   // locks taken over from workers that died holding them
  int workers = 0;               // connected now, without the process that keeps the center
};

struct CenterOptions {
  bool isLocked = true;     // false: Hogwild
  bool servesHosts = true;  // false: only processes of this host and user
  double timeout = 30;      // seconds without getting on; 0: for ever
};

/// One worker's end. One thread at a time. Every call may throw: taccTimeout, after which it can be used further, and
/// taccRemoteError when the process that keeps the center has ended.
class Center {
 public:
  /// Takes the differences of the elements [first, first + n): difference[i] = alpha * (weights[first + i] - center),
  /// by which the center has been moved towards the weights. The array is good until it returns.
  using Sink = std::function<void(std::size_t first, std::size_t n, const float* difference)>;

  virtual ~Center() = default;
  Center(const Center&) = delete;
  Center& operator=(const Center&) = delete;

  /// One exchange. `sink` gets every element once, in ranges that fit a cache (64 KiB at most), in any order, in this
  /// thread and outside of all locks; `weights` may be changed there, in that range. When it ends with an exception,
  /// the ranges that the sink did not get were not moved, but those on their way over a network, which may have been.
  virtual void exchange(const float* weights, float alpha, const Sink& sink) = 0;
  /// Others may move the center meanwhile.
  virtual void read(float* out) = 0;
  virtual void write(const float* values) = 0;

  /// Over a network a round trip.
  virtual CenterCounts counts() = 0;
  /// The number of this worker's last exchange among those of all, from 1 on; 0: there was none. Between two of them
  /// lie the updates of others.
  virtual std::uint64_t lastUpdate() const noexcept = 0;
  /// The numbers travel; else they are mapped.
  virtual bool isRemote() const noexcept = 0;

  std::size_t size() const noexcept { return size_; }
  bool isLocked() const noexcept { return isLocked_; }

 protected:
  Center(std::size_t size, bool isLocked) noexcept : size_(size), isLocked_(isLocked) {}

 private:
  std::size_t size_;
  bool isLocked_;
};

struct KeptCenter {
  std::unique_ptr<Center> center;
  taccUniqueId id;
};

/// This process keeps a center of `count` numbers (at least 1) until the object is destroyed, and serves all that come
/// with the id, in a thread. `initial` null: zeros. Throws taccSystemError.
KeptCenter keepCenter(std::size_t count, const float* initial, const CenterOptions& options);

/// Connects to the center of the id. Of the options only the timeout counts. Throws as taccCenterConnect says.
std::unique_ptr<Center> connectCenter(const taccUniqueId& id, std::size_t count, const CenterOptions& options);

}  // namespace tacc
