/* Gradient buckets. Part of tacc/tacc.hpp. */
#ifndef TACC_CXX_BUCKET_HPP
#define TACC_CXX_BUCKET_HPP

#include <cstddef>
#include <utility>

#include "tacc/cxx/element.hpp"
#include "tacc/cxx/error.hpp"

namespace taccxx {

/// Many small allreduces as few larger ones (taccBucketCreate). Ends before its communicator and stream do.
class Bucket {
 public:
  /// `bytes` of a full bucket; 0: the library chooses.
  explicit Bucket(taccComm_t comm, taccStream_t stream = nullptr, std::size_t bytes = 0) {
    check(taccBucketCreate(&bucket_, comm, stream, bytes));
  }
  /// Takes what `other` has.
  Bucket(Bucket&& other) noexcept : bucket_(std::exchange(other.bucket_, nullptr)) {}
  /// Exchanges what both have.
  Bucket& operator=(Bucket&& other) noexcept {
    std::swap(bucket_, other.bucket_);
    return *this;
  }
  /// Flushes; flush() before it tells whether that went well.
  ~Bucket() { static_cast<void>(taccBucketDestroy(bucket_)); }

  /// The handle of the C interface.
  taccBucket_t get() const noexcept { return bucket_; }

  /// The buffer is the bucket's until the stream is synchronized after flush().
  template <Output R>
  void add(R&& buffer, taccRedOp_t op = taccSum) const {
    check(taccBucketAdd(bucket_, std::ranges::data(buffer), std::ranges::size(buffer), elementTypeOf<R>, op));
  }
  /// Gives what was added to the stream (taccBucketFlush).
  void flush() const { check(taccBucketFlush(bucket_)); }
  /// Of a full bucket.
  std::size_t bytes() const {
    std::size_t bytes = 0;
    check(taccBucketBytes(bucket_, &bytes));
    return bytes;
  }

 private:
  taccBucket_t bucket_ = nullptr;
};

}  // namespace taccxx

#endif
