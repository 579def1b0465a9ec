#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tacc/tacc.h"
#include "worker/collectives.hpp"

namespace tacc::bench {

/// The conversation, a line each way. A rank connects and says
///   hello RANK PID HOST [SECRET]
/// and is then told, one at a time, and answers "ok ..." or "error MESSAGE" to each:
///   join SECRET                                 the id that rank 0 said, or "-"
///   share WORD                                  answered by the WORD of rank 0
///   allocate BYTES SMALLPAGES                   per direction
///   prepare COLLECTIVE TYPE OP ROOT COUNT       answered by the number of variants, 0: not offered
///   time PLACE VARIANT WARMUP ITERATIONS CHECK AGGREGATE PERCALL
///                                               answered by SECONDS CPUSECONDS WRONG ALGORITHM [CALL...]
/// It ends when its channel is closed.
inline constexpr const char* joinCommand = "join";
inline constexpr const char* shareCommand = "share";
inline constexpr const char* allocateCommand = "allocate";
inline constexpr const char* prepareCommand = "prepare";
inline constexpr const char* timeCommand = "time";

/// What is to be called.
struct Task {
  const Collective* collective = nullptr;
  taccDataType_t type = taccFloat32;
  taccRedOp_t op = taccSum;
  int root = 0;
  size_t count = 0;

  std::string encode() const;
  /// Throws std::invalid_argument on a line that encode() did not write.
  static Task decode(const std::string& line);
};

/// How it is to be timed.
struct Block {
  bool inPlace = false;
  int variant = 0;
  int warmup = 0;
  int iterations = 1;
  bool check = false;
  int aggregate = 1;     ///< calls of an iteration, which the library may run together
  bool perCall = false;  ///< times every iteration by itself too

  std::string encode() const;
  static Block decode(const std::string& line);
};

/// What one rank measured.
struct Timing {
  double seconds = 0;     ///< per call
  double cpuSeconds = 0;  ///< of processor time, per call
  int64_t wrong = 0;      ///< elements, 0 if not checked
  std::string algorithm;
  std::vector<double> calls;  ///< seconds of each iteration's calls, if that was asked for

  std::string encode() const;
  /// `line` as encode() wrote it, after the "ok".
  static Timing decode(const std::string& line);
};

}  // namespace tacc::bench
