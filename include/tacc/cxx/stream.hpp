/* Streams. Part of tacc/tacc.hpp. */
#ifndef TACC_CXX_STREAM_HPP
#define TACC_CXX_STREAM_HPP

#include <utility>

#include "tacc/cxx/error.hpp"

namespace taccxx {

/// An ordered queue of asynchronous work, which one thread runs. Goes where a taccStream_t goes; nullptr there runs
/// a call in the calling thread.
class Stream {
 public:
  /// A new stream, with a thread.
  Stream() { check(taccStreamCreate(&stream_)); }
  /// Takes what `other` has.
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  /// Exchanges what both have.
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  /// Waits for the stream's work; synchronize() before it tells whether that went well.
  ~Stream() {
    if (stream_ != nullptr) static_cast<void>(taccStreamDestroy(stream_));
  }

  /// The handle of the C interface.
  taccStream_t get() const noexcept { return stream_; }
  /// The handle of the C interface.
  operator taccStream_t() const noexcept { return stream_; }

  /// Waits for all work given so far, and throws its first error.
  void synchronize() const { check(taccStreamSynchronize(stream_)); }
  /// Whether all work given so far is done. Throws its first error.
  bool isDone() const {
    const taccResult_t result = taccStreamQuery(stream_);
    if (result == taccInProgress) return false;
    check(result);
    return true;
  }

 private:
  taccStream_t stream_ = nullptr;
};

}  // namespace taccxx

#endif
