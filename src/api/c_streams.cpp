// The C functions of streams and groups.
#include "api/boundary.hpp"
#include "api/check.hpp"
#include "api/group.hpp"
#include "api/stream.hpp"

using tacc::guard;

taccResult_t taccStreamCreate(taccStream_t* stream) {
  return guard("taccStreamCreate", nullptr, [&] {
    tacc::checkPointer(stream, "stream");
    *stream = tacc::makeStream();
  });
}

taccResult_t taccStreamDestroy(taccStream_t stream) {
  return guard("taccStreamDestroy", nullptr, [&] {
    tacc::checkNotInGroup(tacc::requireStream(stream));
    const tacc::StreamPointer removed = tacc::removeStream(stream);
    removed->stop();
    if (const auto error = removed->synchronize()) throw tacc::Error(*error);
  });
}

taccResult_t taccStreamQuery(taccStream_t stream) {
  bool idle = false;
  const taccResult_t result = guard("taccStreamQuery", nullptr, [&] {
    const tacc::StreamPointer found = tacc::requireStream(stream);
    idle = found->idle();
    if (!idle) return;
    if (const auto error = found->error()) throw tacc::Error(*error);
  });
  return result == taccSuccess && !idle ? taccInProgress : result;
}

taccResult_t taccStreamSynchronize(taccStream_t stream) {
  return guard("taccStreamSynchronize", nullptr, [&] {
    if (const auto error = tacc::requireStream(stream)->synchronize()) throw tacc::Error(*error);
  });
}

taccResult_t taccGroupStart() {
  tacc::startGroup();
  return taccSuccess;
}

taccResult_t taccGroupEnd() {
  return guard("taccGroupEnd", nullptr, [] { tacc::endGroup(); });
}
