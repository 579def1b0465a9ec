// The objects that a kind of handle points to. A handle that is none is found so without being read through.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/fork.hpp"

namespace tacc {

/// Lives until the process ends, as programs may still call while it does: `static auto* const table = new ...`.
template <class Object>
class HandleTable {
 public:
  /// The handle of an object, from now on.
  Object* keep(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    return objects_.emplace(object.get(), object).first->first;
  }
  /// Null where it is no handle.
  std::shared_ptr<Object> find(Object* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  void remove(Object* handle) {
    std::shared_ptr<Object> last;  // goes when the table is free again
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return;
    last = std::move(found->second);
    objects_.erase(found);
  }

 private:
  ForkMutex mutex_;
  std::unordered_map<Object*, std::shared_ptr<Object>> objects_;
};

}  // namespace tacc
