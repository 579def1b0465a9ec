// The end of the bootstrap star at a rank other than 0.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "comm/channel.hpp"
#include "comm/handshake.hpp"
#include "comm/wait.hpp"

namespace tacc {

class Spoke {
 public:
  /// Connects to rank 0 and returns when it says that all have joined.
  Spoke(const UniqueIdContents& id, int ranks, int rank, double timeoutSeconds, const Interrupt& interrupt);

  /// Runs one collective; an Error in it is told to rank 0 (which tells the others) and ends the connection.
  template <class Work>
  auto collective(const Work& work) {
    try {
      return work();
    } catch (const Error& error) {
      tellFailure(error);
      throw;
    }
  }

  /// Inside collective() only.
  void send(MessageKind kind, Payload payload, std::span<const int> descriptors, std::string_view operation,
            double timeoutSeconds);
  /// The next message, which must be of `kind`. Inside collective() only.
  Message receive(MessageKind kind, std::string_view operation, double timeoutSeconds);

 private:
  /// How far the attempts to join came at best.
  enum class Problem { nobody, silent, unproven };

  bool connect(const std::string& name);
  bool proveMembership(const Secret& secret, const Introduction& who, const Deadline& deadline);
  std::optional<Message> receiveBefore(const Deadline& deadline);
  std::string describeHub() const;
  std::string_view describeProblem() const noexcept;
  [[noreturn]] void failRankZeroEnded(std::string_view operation);
  void nap(double seconds);
  void tellFailure(const Error& error) noexcept;

  const Interrupt& interrupt_;
  int rank_;
  pid_t hubPid_ = 0;  // rank 0's process as the kernel tells
  Channel channel_{FileDescriptor()};
  Problem problem_ = Problem::nobody;
};

}  // namespace tacc
