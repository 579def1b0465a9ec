#include "easgd/center_server.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/bootstrap/listeners.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/quiet_thread.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

constexpr double idleServerSeconds = 3600;
/// After trouble of this process's own.
constexpr std::chrono::milliseconds troublePause(20);
constexpr double receptionRest = 0.05;

std::vector<Listener> listen(const UniqueIdContents& id) {
  auto listeners = listenFor(id);
  if (!listeners) fail(taccInternalError, "another process listens for the workers of this center");
  if (id.port != 0) releasePort(id.port);
  return std::move(*listeners);
}

}  // namespace

CenterServer::CenterServer(CenterMemory& memory, const UniqueIdContents& id, double timeout)
    : memory_(memory),
      self_(introduceSelf(1, 0, checkEnvironment().encryption)),
      reception_(listen(id), self_, id.secret),
      timeout_(timeout) {
  try {
    thread_ = startQuietThread([this] { run(); });
  } catch (const std::system_error& error) {
    fail(taccSystemError, "cannot start the thread that serves the center's workers: {}", error.what());
  }
}

CenterServer::~CenterServer() {
  memory_.close();
  stop_.raise();
  thread_.join();
  sayFarewell();
}

void CenterServer::sayFarewell() noexcept {
  try {
    const Error error(taccRemoteError,
                      fmt::format("the center was destroyed by {}, which kept it", describePlace(self_, true)));
    for (CenterSession& session : sessions_) session.sayFarewell(error);
  } catch (const std::exception&) {
    // The connections end all the same.
  }
}

void CenterServer::run() noexcept {
  while (!stop_.raised()) {
    try {
      turn();
    } catch (const std::exception& error) {
      if (stop_.raised()) return;
      noteTrouble(error);
      std::this_thread::sleep_for(troublePause);
    }
  }
}

void CenterServer::noteTrouble(const std::exception& error) noexcept {
  try {
    if (std::exchange(lastTrouble_, error.what()) != error.what())
      log(LogLevel::warn, noRank, "serving the center's workers: {}", error.what());
  } catch (const std::exception&) {
    // There is no memory to say so.
  }
}

void CenterServer::turn() {
  std::vector<pollfd> sockets;
  Deadline next(idleServerSeconds);
  const bool receives = receptionRests_.passed();
  if (receives)
    reception_.addDescriptors(sockets, next);
  else
    next = std::min(next, receptionRests_);
  const std::size_t strangers = sockets.size();
  for (const CenterSession& session : sessions_) {
    sockets.push_back(session.descriptor());
    session.addDue(next);
  }
  waitFor(sockets, stop_, next);
  auto socket = sockets.begin() + static_cast<std::ptrdiff_t>(strangers);
  for (CenterSession& session : sessions_) session.progress((socket++)->revents);
  sessions_.remove_if([](const CenterSession& session) { return session.isOver(); });
  if (receives) receive(std::span(sockets).first(strangers));
}

/// Trouble in it, such as that there is no descriptor for another worker, does not hold up those that are here.
void CenterServer::receive(std::span<const pollfd> sockets) {
  try {
    reception_.serve(sockets, [this](Guest& guest) { admit(guest); });
  } catch (const std::exception& error) {
    noteTrouble(error);
    receptionRests_ = Deadline(receptionRest);
  }
}

void CenterServer::admit(Guest& guest) {
  sessions_.emplace_back(std::move(guest), memory_, self_, ++visitors_, timeout_);
}

}  // namespace tacc
