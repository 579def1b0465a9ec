// The C functions of tacc/center.h.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "api/boundary.hpp"
#include "api/center_handles.hpp"
#include "api/check.hpp"
#include "core/error.hpp"
#include "easgd/center.hpp"
#include "easgd/elastic_kernels.hpp"

using tacc::CenterCall;
using tacc::checkPointer;
using tacc::fail;
using tacc::guardLong;

namespace {

constexpr std::size_t configHead = offsetof(taccCenterConfig_t, version) + sizeof(unsigned);

void checkFlag(const char* name, int value) {
  if (value != 0 && value != 1) fail(taccInvalidArgument, "config: {} is {}; it must be 0 or 1", name, value);
}

/// Fields that the program's older header did not have get their defaults.
tacc::CenterOptions checkOptions(const taccCenterConfig_t* config) {
  taccCenterConfig_t known = TACC_CENTER_CONFIG_INITIALIZER;
  if (config != nullptr) {
    if (config->size < configHead || config->size > sizeof known) {
      fail(taccInvalidArgument, "config: size {} is that of no version up to {}; start it from {}", config->size,
           TACC_VERSION_CODE, "TACC_CENTER_CONFIG_INITIALIZER");
    }
    if (config->version == 0 || config->version / 10000 != TACC_MAJOR) {
      fail(taccInvalidArgument,
           "config: version {} does not fit this library, which is {}; the first number must be the same",
           config->version, TACC_VERSION_CODE);
    }
    std::memcpy(static_cast<void*>(&known), config, config->size);
  }
  checkFlag("locked", known.locked);
  checkFlag("servesHosts", known.servesHosts);
  if (!std::isfinite(known.timeout) || known.timeout < 0) {
    fail(taccInvalidArgument,
         "config: timeout is {}; it must be a finite number of seconds of at least 0 (0 waits for ever)",
         known.timeout);
  }
  return {.isLocked = known.locked == 1, .servesHosts = known.servesHosts == 1, .timeout = known.timeout};
}

void checkCount(std::size_t count) {
  if (count == 0) fail(taccInvalidArgument, "count is 0; a center has at least one number");
  if (count > static_cast<std::size_t>(PTRDIFF_MAX) / (2 * sizeof(float)))
    fail(taccInvalidArgument, "count {} is more float32 than an address space has room for", count);
}

void checkNumbers(const void* numbers, const char* name) {
  checkPointer(numbers, name);
  tacc::checkFloats(numbers, name);
}

}  // namespace

taccResult_t taccCenterCreate(taccCenter_t* center, taccUniqueId* id, size_t count, const float* initial,
                              const taccCenterConfig_t* config) {
  return guardLong("taccCenterCreate", nullptr, [&] {
    checkPointer(center, "center");
    checkPointer(id, "id");
    checkCount(count);
    if (initial != nullptr) checkNumbers(initial, "initial");
    tacc::KeptCenter made = tacc::keepCenter(count, initial, checkOptions(config));
    *center = tacc::makeCenterHandle(std::move(made.center));
    *id = made.id;
  });
}

taccResult_t taccCenterConnect(taccCenter_t* center, const taccUniqueId* id, size_t count,
                               const taccCenterConfig_t* config) {
  return guardLong("taccCenterConnect", nullptr, [&] {
    checkPointer(center, "center");
    checkPointer(id, "id");
    checkCount(count);
    *center = tacc::makeCenterHandle(tacc::connectCenter(*id, count, checkOptions(config)));
  });
}

taccResult_t taccCenterExchange(taccCenter_t center, float* weights, float alpha) {
  return guardLong("taccCenterExchange", nullptr, [&] {
    const CenterCall call(center);
    checkNumbers(weights, "weights");
    if (!std::isfinite(alpha) || alpha < 0)
      fail(taccInvalidArgument, "alpha is {}; it must be a finite number of at least 0, and converges up to 1", alpha);
    const tacc::ElasticKernels& kernels = tacc::elasticKernels();
    call.center().exchange(weights, alpha, [&](std::size_t first, std::size_t n, const float* difference) {
      kernels.subtract(weights + first, difference, n);
    });
  });
}

taccResult_t taccCenterRead(taccCenter_t center, float* values) {
  return guardLong("taccCenterRead", nullptr, [&] {
    const CenterCall call(center);
    checkNumbers(values, "values");
    call.center().read(values);
  });
}

taccResult_t taccCenterWrite(taccCenter_t center, const float* values) {
  return guardLong("taccCenterWrite", nullptr, [&] {
    const CenterCall call(center);
    checkNumbers(values, "values");
    call.center().write(values);
  });
}

taccResult_t taccCenterInfo(taccCenter_t center, taccCenterInfo_t* info) {
  return guardLong("taccCenterInfo", nullptr, [&] {
    const CenterCall call(center);
    checkPointer(info, "info");
    if (info->size < sizeof info->size || info->size > sizeof *info)
      fail(taccInvalidArgument, "info: size {} is that of no version; set it to sizeof(taccCenterInfo_t)", info->size);
    tacc::Center& one = call.center();
    const tacc::CenterCounts counts = one.counts();
    const taccCenterInfo_t all{
        info->size,       one.size(),     counts.updates,         counts.ownUpdates,     counts.bytes,
        counts.inherited, counts.workers, one.isLocked() ? 1 : 0, one.isRemote() ? 1 : 0};
    std::memcpy(static_cast<void*>(info), &all, all.size);
  });
}

taccResult_t taccCenterDestroy(taccCenter_t center) {
  if (center == nullptr) return taccSuccess;
  return guardLong("taccCenterDestroy", nullptr, [&] {
    CenterCall call(center);
    call.remove();
  });
}
