// The variables of libtacc_mpi: what they may be. The library knows them, as it refuses variables that it does not know
// and lists those that there are; libtacc_mpi reads them itself, before it makes any communicator.
#pragma once

#include <charconv>
#include <climits>
#include <optional>
#include <string_view>

namespace tacc::mpi {

/// TACC_MPI.
enum class Mode { on, off, report };
inline constexpr std::string_view allowedModes = "on, off or report";
/// Nothing for what it must not be.
constexpr std::optional<Mode> modeIn(std::string_view text) noexcept {
  if (text == "on") return Mode::on;
  if (text == "off") return Mode::off;
  if (text == "report") return Mode::report;
  return std::nullopt;
}

/// A number from `least` on that an int holds, or "off", which is `off`. Nothing for all else.
inline std::optional<int> numberOrOff(std::string_view text, int least, int off) noexcept {
  if (text == "off") return off;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least) return std::nullopt;
  return number;
}

/// TACC_MPI_NONBLOCKING: from how many bytes on collectives with requests are taken over; INT_MAX: none is.
inline constexpr std::string_view allowedNonblocking = "a number of bytes, or off";
inline std::optional<int> nonblockingIn(std::string_view text) noexcept { return numberOrOff(text, 0, INT_MAX); }

/// TACC_MPI_CONTEST: how many calls of a kind before it is measured who is the faster one; 0: it is not.
inline constexpr std::string_view allowedContest = "a number of calls, 1 or more, or off";
inline std::optional<int> contestIn(std::string_view text) noexcept { return numberOrOff(text, 1, 0); }

}  // namespace tacc::mpi
