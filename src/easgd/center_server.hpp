// The thread of the process that keeps a center: lets workers in and serves them, one piece after the other.
#pragma once

#include <cstdint>
#include <exception>
#include <list>
#include <span>
#include <string>
#include <thread>

#include "comm/bootstrap/reception.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/bootstrap/wait.hpp"
#include "easgd/center_session.hpp"

namespace tacc {

class CenterServer {
 public:
  /// Listens where the id says, from now until destruction. Throws taccSystemError.
  CenterServer(CenterMemory& memory, const UniqueIdContents& id, double timeout);
  /// Tells the workers.
  ~CenterServer();
  CenterServer(const CenterServer&) = delete;
  CenterServer& operator=(const CenterServer&) = delete;

 private:
  void run() noexcept;
  void turn();
  void receive(std::span<const pollfd> sockets);
  void admit(Guest& guest);
  void noteTrouble(const std::exception& error) noexcept;
  void sayFarewell() noexcept;

  CenterMemory& memory_;
  Introduction self_;
  Reception reception_;
  double timeout_;
  std::uint32_t visitors_ = 0;
  std::list<CenterSession> sessions_;
  Deadline receptionRests_{0};  // after trouble of this process's own, such as no descriptor for another worker
  std::string lastTrouble_;
  Interrupt stop_{0};
  std::thread thread_;
};

}  // namespace tacc
