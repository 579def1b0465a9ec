#include "api/center_handles.hpp"

#include <unistd.h>

#include <utility>

#include "api/handle_table.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"

namespace tacc {
namespace {

/// A center that the program leaves open is served until the process ends.
HandleTable<taccCenter>& centerTable() {
  static auto* const table = new HandleTable<taccCenter>;
  return *table;
}

std::shared_ptr<taccCenter> findCenter(taccCenter_t handle) {
  if (handle == nullptr) fail(taccInvalidArgument, "center is NULL");
  auto found = centerTable().find(handle);
  if (!found) {
    fail(taccInvalidArgument,
         "center {} is not a center, or has been destroyed; it must come from taccCenterCreate or taccCenterConnect",
         static_cast<const void*>(handle));
  }
  // What it holds in a child is of its parent, and stays untouched there.
  if (handle->generation != processGeneration()) {
    fail(taccInvalidUsage,
         "center {} is of process {}, from which this process was forked; a child connects to the center itself",
         static_cast<const void*>(handle), handle->process);
  }
  return found;
}

}  // namespace

taccCenter_t makeCenterHandle(std::unique_ptr<Center> center) {
  auto made = std::make_shared<taccCenter>();
  made->center = std::move(center);
  made->generation = processGeneration();
  made->process = ::getpid();
  return centerTable().keep(std::move(made));
}

CenterCall::CenterCall(taccCenter_t handle) {
  auto found = findCenter(handle);
  if (found->inside.exchange(true, std::memory_order_acquire)) {
    fail(taccInvalidUsage, "another thread is inside a call on this center; a taccCenter_t is used by one at a time");
  }
  handle_ = std::move(found);
}

void CenterCall::remove() { centerTable().remove(handle_.get()); }

}  // namespace tacc
