// The last operations of a communicator, with times: what to look at when one has failed.
//
// Recording costs two reads of a counter and one cache line a call. With TACC_TRACE=FILE the record is written at the
// communicator's end, and when it fails: FILE.<n>.rank<r>.txt for people and FILE.<n>.rank<r>.json for chrome://tracing
// and Perfetto, <n> counting the communicators of the process. Without it, a failure logs the last few
// (TACC_DEBUG=warn).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "core/ticks.hpp"
#include "tacc/tacc.h"

namespace tacc {

class FlightRecorder {
 public:
  static constexpr std::size_t kept = 1000;

  /// `file`: TACC_TRACE, may be empty.
  FlightRecorder(int rank, std::string file);
  /// Writes the record if a file was given.
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// An operation begins; `signature` as in engine/signature.hpp, 0: sends and receives.
  void begin(std::uint64_t signature) noexcept {
    Flight& flight = flights_[next_ % kept];
    flight.signature = signature;
    flight.end = 0;
    flight.start = readTicks();
    ++next_;
  }
  /// The operation that began last is over.
  void end() noexcept { flights_[(next_ - 1) % kept].end = readTicks(); }
  /// Something to know about the calls from now on, as a sentence; the last few are kept.
  void note(std::string text);
  /// It has failed: writes or logs the record, once.
  void fail(taccResult_t result, const char* message) noexcept;

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
  std::string nameOf(const Flight& flight) const;
  std::size_t oldest() const noexcept { return next_ > kept ? next_ - kept : 0; }
  void write() const noexcept;

  int rank_;
  std::string file_;
  int number_;
  TickRate rate_;
  std::size_t next_ = 0;
  bool hasFailed_ = false;
  std::string failure_;
  std::deque<Note> notes_;
  std::array<Flight, kept> flights_;
};

}  // namespace tacc
