// What a taccBucket_t points to: tensors that wait until there are enough of them for one allreduce.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "api/stream.hpp"
#include "api/work.hpp"
#include "selection/bucket_size.hpp"
#include "tacc/tacc.h"

struct taccBucket {
 public:
  /// The program's thread is inside `comm`, as in all functions here. `bytes` 0: chosen.
  taccBucket(taccComm& comm, tacc::StreamPointer stream, std::size_t bytes);

  taccComm& comm() const noexcept { return *comm_; }
  std::size_t bytes() const noexcept { return sizes_.full; }

  /// Takes a checked allreduce in place.
  void add(const tacc::Call& call, taccRedOp_t op);
  /// Launches what waits. What a step adds between two of them is what sizes are chosen for.
  void flush();

 private:
  void launch(tacc::Unit unit);
  /// Takes it out of those that wait, and launches it.
  void launchOpen(std::size_t index);

  tacc::CommReference comm_;
  tacc::StreamPointer stream_;  // null: the null stream
  bool isChosen_;               // by the library
  tacc::BucketSizes sizes_;
  std::size_t stepBytes_;            // for which they were chosen
  std::size_t addedBytes_ = 0;       // since the last flush
  std::vector<tacc::Unit> waiting_;  // one for each type and operation
};

namespace tacc {

/// Buckets are found by their handles in a table, as streams are.
taccBucket_t makeBucket(taccComm& comm, StreamPointer stream, std::size_t bytes);
/// Fails when the handle is not that of a bucket.
std::shared_ptr<taccBucket> requireBucket(taccBucket_t handle);
/// requireBucket(), taking it out of the table.
std::shared_ptr<taccBucket> removeBucket(taccBucket_t handle);

}  // namespace tacc
