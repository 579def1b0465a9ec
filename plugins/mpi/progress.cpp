#include "progress.hpp"

#ifdef OPEN_MPI
#include <dlfcn.h>
#endif

namespace tacc::mpi {
namespace {

#ifdef OPEN_MPI
// With more ranks than cores Open MPI calls sched_yield() whenever it has looked in vain, also in MPI_Test. Since Linux
// gives up the rest of a time slice by that, each look may take as long as such a slice: milliseconds, in waits of
// microseconds.
using SetYield = bool (*)(bool);  // returns what it was
SetYield setYield = nullptr;      // Open MPI's own; null where it has none
bool yields = false;              // what Open MPI decided in MPI_Init

/// While it lives Open MPI does not yield in any thread, unless another one's ends.
class KeptCore {
 public:
  KeptCore() noexcept {
    if (yields) setYield(false);
  }
  ~KeptCore() {
    if (yields) setYield(true);
  }
  KeptCore(const KeptCore&) = delete;
  KeptCore& operator=(const KeptCore&) = delete;
};
#else
struct KeptCore {
  KeptCore() noexcept {}
};
#endif

}  // namespace

void learnHowMpiYields() noexcept {
#ifdef OPEN_MPI
  setYield = reinterpret_cast<SetYield>(dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle"));
  if (setYield == nullptr) return;
  yields = setYield(false);
  setYield(yields);
#endif
}

void letMpiProgress(MPI_Request& never) noexcept {
  const KeptCore kept;
  int isThere = 0;
  PMPI_Test(&never, &isThere, MPI_STATUS_IGNORE);
}

}  // namespace tacc::mpi
