// A thread that calls on a part of a rank's communicator while the rank itself calls on the whole: both may share their
// connections.
#pragma once

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "chaos/program.hpp"

namespace tacc::chaos {

class Companion {
 public:
  /// `comm`: of all `members`, numbers in the round, in the opposite order. Takes it. All make theirs.
  Companion(const Round& round, Board& board, int self, std::vector<int> members, taccComm_t comm);
  /// As end(false), if nobody has said how.
  ~Companion() { end(false); }
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  /// A call has failed, and there will be no more.
  bool hasFailed() const { return hasFailed_; }
  /// The thread is over and the communicator gone afterwards. `isAgreed`: all members say so, and the calls end well.
  void end(bool isAgreed);

 private:
  static constexpr std::size_t most = 1 << 14;  // elements

  void run();
  /// Of a call that began then and has failed.
  void tell(double start);
  taccResult_t call(std::uint32_t number, std::size_t count);
  void check(std::uint32_t number, std::size_t count);

  Round round_;
  Board& board_;
  int self_;
  std::vector<int> members_;  // by their number in the communicator
  taccComm_t comm_;
  std::atomic<bool> mayEnd_{false}, isRevoked_{false}, hasFailed_{false};
  std::array<std::vector<std::int32_t>, 2> data_;
  std::thread thread_;
};

}  // namespace tacc::chaos
