// The C functions of gradient buckets.
#include "api/boundary.hpp"
#include "api/bucket.hpp"
#include "api/check.hpp"
#include "api/group.hpp"
#include "api/handles.hpp"

using tacc::Entry;
using tacc::guard;
using tacc::guardOfAll;

namespace {

constexpr tacc::ArgumentNames addNames{.send = "buffer", .receive = "buffer", .count = "count"};

/// Whose error it is, where the handle is one.
taccComm_t commOf(taccBucket_t bucket) noexcept {
  try {
    return &tacc::requireBucket(bucket)->comm();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

taccResult_t taccBucketCreate(taccBucket_t* bucket, taccComm_t comm, taccStream_t stream, size_t bytes) {
  return guard("taccBucketCreate", comm, [&] {
    tacc::checkPointer(bucket, "bucket");
    const Entry entry(comm);
    *bucket = tacc::makeBucket(*comm, tacc::findStream(stream), bytes);
  });
}

taccResult_t taccBucketAdd(taccBucket_t bucket, void* buffer, size_t count, taccDataType_t datatype, taccRedOp_t op) {
  return guardOfAll("taccBucketAdd", commOf(bucket), [&] {
    const auto found = tacc::requireBucket(bucket);
    const Entry entry(&found->comm());
    tacc::checkNoGroup();
    tacc::Call call{tacc::Collective::allReduce, buffer, buffer, count, datatype, op, 0, nullptr};
    tacc::checkCall(found->comm(), call, addNames);
    found->add(call, op);
  });
}

taccResult_t taccBucketFlush(taccBucket_t bucket) {
  return guardOfAll("taccBucketFlush", commOf(bucket), [&] {
    const auto found = tacc::requireBucket(bucket);
    const Entry entry(&found->comm());
    tacc::checkNoGroup();
    found->flush();
  });
}

taccResult_t taccBucketBytes(taccBucket_t bucket, size_t* bytes) {
  return guard("taccBucketBytes", commOf(bucket), [&] {
    tacc::checkPointer(bytes, "bytes");
    *bytes = tacc::requireBucket(bucket)->bytes();
  });
}

taccResult_t taccBucketDestroy(taccBucket_t bucket) {
  if (bucket == nullptr) return taccSuccess;
  return guardOfAll("taccBucketDestroy", commOf(bucket), [&] {
    const auto removed = tacc::removeBucket(bucket);
    taccComm& comm = removed->comm();
    if (!tacc::has(comm.life.load(), tacc::Needs::active)) return;
    const Entry entry(&comm);
    if (comm.communicator->asyncError() == taccSuccess) removed->flush();
  });
}
