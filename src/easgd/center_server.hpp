// The thread of the process that keeps a center: lets workers in and serves them, one piece after the other.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "comm/reception.hpp"
#include "comm/unique_id.hpp"
#include "comm/wait.hpp"
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
  void admit(Guest& guest);
  void sayFarewell() noexcept;

  CenterMemory& memory_;
  Introduction self_;
  Reception reception_;
  double timeout_;
  std::uint32_t visitors_ = 0;
  std::list<CenterSession> sessions_;
  std::string lastTrouble_;
  Interrupt stop_{0};
  std::thread thread_;
};

}  // namespace tacc
