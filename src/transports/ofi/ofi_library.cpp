#include "transports/ofi/ofi_library.hpp"

#include "core/kept_signals.hpp"
#include "core/loaded_library.hpp"

namespace tacc {
namespace {

// Structures grow from version to version, and a library keeps the functions for the older ones. With headers from 1.20
// on it is the newest that fits.
constexpr bool isOld = FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 20;
constexpr const char* infoVersion = isOld ? "FABRIC_1.3" : nullptr;
constexpr const char* fabricVersion = isOld ? "FABRIC_1.1" : nullptr;

OfiLibrary loadOfi() {
  const KeptSignals kept;  // libpsm2, which libfabric brings in, takes them
  const LoadedLibrary library("libfabric.so.1", "libfabric1");
  OfiLibrary functions{};
  library.find(functions.getinfo, "fi_getinfo", infoVersion);
  library.find(functions.freeinfo, "fi_freeinfo", infoVersion);
  library.find(functions.dupinfo, "fi_dupinfo", infoVersion);
  library.find(functions.fabric, "fi_fabric", fabricVersion);
  library.find(functions.strerror, "fi_strerror");
  library.find(functions.version, "fi_version");
  return functions;
}

}  // namespace

const OfiLibrary& ofi() {
  static const OfiLibrary functions = loadOfi();
  return functions;
}

}  // namespace tacc
