// The last operations of a communicator: what to look at when one has failed.
//
// With TACC_TRACE=FILE they are many and have times, and are written at the communicator's end, and when it fails:
// FILE.<n>.rank<r>.txt for people and FILE.<n>.rank<r>.json for chrome://tracing and Perfetto, <n> counting the
// communicators of the process. That costs a call two reads of a counter, 10 ns each on some machines, a tenth of a
// short call. Without it a failure logs what the last few were (TACC_DEBUG=warn).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/ticks.hpp"
#include "tacc/tacc.h"

namespace tacc {

class FlightRecorder {
 public:
  static constexpr std::size_t traced = 1024, logged = 8;  // operations that are kept, powers of two

  /// `file`: TACC_TRACE; empty: nothing is traced.
  FlightRecorder(int rank, std::string file);
  /// Writes the record if a file was given.
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// An operation begins; `signature` as in engine/signature.hpp, 0: sends and receives.
  void begin(std::uint64_t signature) noexcept {
    Flight& flight = flightOf(next_++);
    flight.signature = signature;
    if (!isTraced()) return;
    flight.end = 0;
    flight.start = readTicks();
  }
  /// The operation that began last is over.
  void end() noexcept {
    if (isTraced()) flightOf(next_ - 1).end = readTicks();
  }
  /// Something to know about the calls from now on, as a sentence; the last few are kept of a trace.
  void note(std::string text);
  /// It has failed: writes or logs the record, once.
  void fail(taccResult_t result, const char* message) noexcept;

  /// These two of a traced communicator.
  std::string text() const;
  std::string chromeTrace() const;

 private:
  struct Flight {
    std::uint64_t signature;
    std::uint64_t start;
    std::uint64_t end;  // 0: not over
  };
  struct Note {
    std::size_t operation;  // that it was made in
    std::uint64_t at;
    std::string text;
  };
  bool isTraced() const noexcept { return !file_.empty(); }
  Flight& flightOf(std::size_t operation) noexcept { return flights_[operation & (flights_.size() - 1)]; }
  const Flight& flightOf(std::size_t operation) const noexcept { return flights_[operation & (flights_.size() - 1)]; }
  std::string nameOf(const Flight& flight) const;
  std::size_t oldest() const noexcept { return next_ > flights_.size() ? next_ - flights_.size() : 0; }
  void write() const noexcept;

  int rank_;
  std::string file_;
  int number_;
  TickRate rate_;
  std::size_t next_ = 0;
  bool hasFailed_ = false;
  std::string failure_;
  std::deque<Note> notes_;
  std::vector<Flight> flights_;
};

}  // namespace tacc
