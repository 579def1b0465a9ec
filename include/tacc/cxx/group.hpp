/* Groups of calls. Part of tacc/tacc.hpp. */
#ifndef TACC_CXX_GROUP_HPP
#define TACC_CXX_GROUP_HPP

#include <utility>

#include "tacc/cxx/error.hpp"

namespace taccxx {

namespace detail {

/// Makes the open group of this thread, if there is one, end without running: a call that fails its check does that.
inline void spoilGroup() noexcept {
  static_cast<void>(taccAllReduce(nullptr, nullptr, 0, taccInt8, taccSum, nullptr, nullptr));
}

}  // namespace detail

/// Calls of this thread between its making and end() run together at end(). Without end(), as when an exception passes,
/// none of them runs, nor any of the groups around it. Nested groups end in the opposite order.
class Group {
 public:
  Group() { check(taccGroupStart()); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    if (!isOpen_) return;
    detail::spoilGroup();
    static_cast<void>(taccGroupEnd());
  }

  /// Runs the calls, and throws the first error.
  void end() {
    if (!std::exchange(isOpen_, false)) throw Error(taccInvalidUsage, "taccxx::Group::end: this group has ended");
    check(taccGroupEnd());
  }

 private:
  bool isOpen_ = true;
};

}  // namespace taccxx

#endif
