// One worker, as the center's process serves it. Nothing here waits: where the worker does not read, or a lock is held
// by another, the session stands still and the others go on.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "comm/bootstrap/reception.hpp"
#include "easgd/center_memory.hpp"
#include "easgd/center_protocol.hpp"

namespace tacc {

class CenterSession {
 public:
  /// `self`: the center's process, as it introduced itself. `number`: of this worker among all that came. `timeout`:
  /// how long a request may wait for a lock, in seconds; 0: for ever.
  CenterSession(Guest guest, CenterMemory& memory, const Introduction& self, std::uint32_t number, double timeout);

  ~CenterSession();
  CenterSession(const CenterSession&) = delete;
  CenterSession& operator=(const CenterSession&) = delete;

  /// For poll().
  pollfd descriptor() const noexcept;
  /// When progress() is due in any case, if that is earlier than `next`.
  void addDue(Deadline& next) const;
  /// Does what can be done now, a few pieces at most. `revents`: what poll() said of the descriptor.
  void progress(short revents) noexcept;

  bool isOver() const noexcept { return state_ == State::over; }

  /// Before the center ends: says so.
  void sayFarewell(const Error& error) noexcept;

 private:
  enum class State : std::uint8_t {
    joining,
    mapped,   // it uses the memory itself
    served,   // over the connection
    leaving,  // it has been told why it cannot join; over when that is sent
    over
  };

  void step(short revents);
  void serveSome(bool& isReadable);
  /// False: it has to wait for a lock.
  bool serve(const Message& message);
  void join(const Message& message);
  void checkJoin(const CenterJoin& join) const;
  bool answer(const CenterRequest& request, const Message& message);
  bool access(const CenterRequest& request, const Message& message, std::byte* result);
  [[noreturn]] void failOnGarbage(const char* what) const;
  std::string describe() const;

  Channel channel_;
  bool overTcp_;
  Introduction who_, self_;
  CenterMemory& memory_;
  std::uint32_t number_;
  double timeout_;
  State state_ = State::joining;
  bool isCounted_ = false;                        // among the center's workers
  Deadline stateEnds_;                            // of joining and leaving
  std::optional<Message> request_;                // taken, and not yet answered
  std::optional<Deadline> givesUp_;               // on the lock that the request waits for
  Deadline retries_{0};                           // then, while it waits
  std::optional<std::uint32_t> failedOperation_;  // the pieces of it that still come are thrown away
};

}  // namespace tacc
