// What is told of connections that a rank has refused, at any of its sockets.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace tacc {

/// The log gets one line for each host and reason, and only of the first of them: a stranger that connects again and
/// again must not fill it.
class Refusals {
 public:
  /// `rank`: this one's, for the log.
  explicit Refusals(int rank) noexcept : rank_(rank) {}

  /// `from`: an address with its port where `isTcp`, else e.g. "process 4711 of this host".
  /// Without memory for it, it is only counted.
  void note(std::string_view from, bool isTcp, std::string_view why) noexcept;
  /// "; 3 connections were refused, the last from 192.0.2.2:4711: ...", or nothing.
  std::string describe() const;

 private:
  int rank_;
  int count_ = 0;
  std::string last_;
  std::set<std::string, std::less<>> logged_;  // host and reason, without the port
};

}  // namespace tacc
