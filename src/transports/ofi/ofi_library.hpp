// The functions of libfabric, which is loaded at their first use. The rest of its interface is in its headers alone.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

namespace tacc {

struct OfiLibrary {
  decltype(&::fi_getinfo) getinfo;
  decltype(&::fi_freeinfo) freeinfo;
  decltype(&::fi_dupinfo) dupinfo;
  decltype(&::fi_fabric) fabric;
  decltype(&::fi_strerror) strerror;
  decltype(&::fi_version) version;
};

/// Throws taccSystemError where it cannot be loaded.
const OfiLibrary& ofi();

}  // namespace tacc
