#include "core/error.hpp"
#include "topology/sources/ibnet.hpp"

namespace tacc {

bool hasIbnetdisc() noexcept { return false; }

Fabric fabricNow() {
  fail(taccInvalidUsage,
       "this build cannot ask an InfiniBand subnet; install libibnetdisc-dev and build again, or give a "
       "file that ibnetdiscover wrote as TACC_TOPO_FILE");
}

}  // namespace tacc
