// Descriptors that this process keeps for the moment when it has no other left, so that a rank which cannot go on for
// lack of them can still tell the others: as servers do that have to accept a connection in order to refuse it.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace tacc {

/// Gives the spare descriptors up for as long as it lives, to the next that opens one. The process keeps six again
/// when the last of these ends, if there is room by then: for a listener of unix sockets, one of TCP, two connections
/// (one to a survivor of a shrink, whose death is looked for), and the events of two that wait. Any thread.
class SpareDescriptors {
 public:
  SpareDescriptors() noexcept;
  ~SpareDescriptors();
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;
};

/// Keeps what is missing of the spare descriptors, if there is room; the library does so when it is loaded, unless the
/// process may open few files, and when a rank joins.
void keepSpareDescriptors() noexcept;

/// Whether errno's `code` says that there is no descriptor left.
constexpr bool isDescriptorShortage(int code) noexcept { return code == EMFILE || code == ENFILE; }

/// What a person can do about it: " (all 1024 files are open that process 4711 may have open; raise ulimit -n)". Empty
/// for any other code.
std::string describeShortage(int code);

/// As failErrno(), where a descriptor was to be made: says also how many there are.
template <class... Args>
[[noreturn]] void failDescriptor(fmt::format_string<Args...> format, Args&&... args) {
  const int code = errno;
  const std::string sentence = fmt::format(format, std::forward<Args>(args)...);
  errno = code;
  failErrno("{}{}", sentence, describeShortage(code));
}

}  // namespace tacc
