// A library that is loaded when it is needed: loading some of those of others takes longer than all of tacc does, and
// most programs need none of them.
#pragma once

#include <dlfcn.h>

#include <type_traits>

#include "core/error.hpp"

namespace tacc {

/// Never unloaded: it may have its own threads and handlers.
class LoadedLibrary {
 public:
  /// `file`: a path, or as the linker calls it, with the version that the headers are of; it must outlive this.
  /// `remedy` ends the sentence of the error: taccSystemError, where it cannot be loaded.
  LoadedLibrary(const char* file, const char* remedy)
      : file_(file), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
    if (handle_ == nullptr) fail(taccSystemError, "{} cannot be loaded ({}); {}", file, ::dlerror(), remedy);
  }

  /// Sets `function` to the library's `name`, of the symbol version that the headers are of where the library has
  /// several; null: of the newest. Throws taccSystemError where there is none.
  template <class Function>
  void find(Function& function, const char* name, const char* version = nullptr) const {
    static_assert(std::is_pointer_v<Function>);
    void* const found = version == nullptr ? ::dlsym(handle_, name) : ::dlvsym(handle_, name, version);
    if (found == nullptr) fail(taccSystemError, "{} has no {}", file_, name);
    function = reinterpret_cast<Function>(found);
  }

 private:
  const char* file_;
  void* handle_;
};

}  // namespace tacc
