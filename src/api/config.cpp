#include "api/config.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/error.hpp"
#include "transports/mpi/plugin_table.hpp"

namespace tacc {

namespace {

/// The fields that say what the others are; every version has them.
constexpr std::size_t headBytes = offsetof(taccConfig_t, version) + sizeof(taccConfig_t::version);

void checkSeconds(const char* field, double seconds, bool zeroIsForEver) {
  const bool right = std::isfinite(seconds) && (zeroIsForEver ? seconds >= 0.0 : seconds > 0.0);
  if (right) return;
  fail(taccInvalidArgument, "config: {} is {}; it must be a finite number of seconds {}", field, seconds,
       zeroIsForEver ? "of at least 0 (0 waits for ever)" : "greater than 0");
}

void checkFlag(const char* field, int value) {
  if (value != 0 && value != 1) fail(taccInvalidArgument, "config: {} is {}; it must be 0 or 1", field, value);
}

void checkHead(const taccConfig_t& config) {
  if (config.magic != TACC_CONFIG_MAGIC) {
    fail(taccInvalidArgument, "config: magic is {:#x} and not {:#x}; start it from TACC_CONFIG_INITIALIZER",
         config.magic, TACC_CONFIG_MAGIC);
  }
  if (config.size < headBytes) {
    fail(taccInvalidArgument, "config: size {} is smaller than any version's; start it from TACC_CONFIG_INITIALIZER",
         config.size);
  }
  if (config.size > sizeof(taccConfig_t)) {
    fail(taccInvalidArgument,
         "config: size {} (version code {}) is of a newer tacc than this library, which is {} and knows {} bytes",
         config.size, config.version, TACC_VERSION_CODE, sizeof(taccConfig_t));
  }
  if (config.version == 0 || config.version / 10000 != TACC_MAJOR) {
    fail(taccInvalidArgument,
         "config: version {} does not fit this library, which is {}; the first number must be the same", config.version,
         TACC_VERSION_CODE);
  }
}

}  // namespace

CommConfig checkConfig(const taccConfig_t* config) {
  taccConfig_t known = TACC_CONFIG_INITIALIZER;
  if (config != nullptr) {
    checkHead(*config);
    const auto take = [&](std::size_t offset, std::size_t bytes) {
      if (offset + bytes > config->size) return;
      std::memcpy(reinterpret_cast<std::byte*>(&known) + offset, reinterpret_cast<const std::byte*>(config) + offset,
                  bytes);
    };
    take(offsetof(taccConfig_t, initTimeout), sizeof(known.initTimeout));
    take(offsetof(taccConfig_t, operationTimeout), sizeof(known.operationTimeout));
    take(offsetof(taccConfig_t, algorithm), sizeof(known.algorithm));
    take(offsetof(taccConfig_t, name), sizeof(known.name));
    take(offsetof(taccConfig_t, transport), sizeof(known.transport));
    take(offsetof(taccConfig_t, blocking), sizeof(known.blocking));
    take(offsetof(taccConfig_t, reproducible), sizeof(known.reproducible));
    take(offsetof(taccConfig_t, dynamic), sizeof(known.dynamic));
    take(offsetof(taccConfig_t, idle), sizeof(known.idle));
    take(offsetof(taccConfig_t, idleContext), sizeof(known.idleContext));
    take(offsetof(taccConfig_t, halfPartialSums), sizeof(known.halfPartialSums));
  }
  checkSeconds("initTimeout", known.initTimeout, false);
  checkSeconds("operationTimeout", known.operationTimeout, true);
  checkFlag("blocking", known.blocking);
  checkFlag("reproducible", known.reproducible);
  checkFlag("dynamic", known.dynamic);
  checkFlag("halfPartialSums", known.halfPartialSums);
  CommConfig checked;
  checked.isBlocking = known.blocking == 1;
  checked.isReproducible = known.reproducible == 1;
  checked.dynamic = known.dynamic == 1;
  checked.idle = {known.idle, known.idleContext};
  checked.halfPartialSums = known.halfPartialSums == 1;
  checked.initTimeout = known.initTimeout;
  checked.operationTimeout = known.operationTimeout;
  if (known.algorithm != nullptr) checked.algorithm = known.algorithm;
  if (known.name != nullptr) checked.name = known.name;
  if (known.transport != nullptr) checked.transport = std::make_shared<PluginTable>(*known.transport);
  return checked;
}

}  // namespace tacc
