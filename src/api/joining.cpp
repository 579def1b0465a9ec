#include "api/joining.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "api/boundary.hpp"
#include "api/handles.hpp"
#include "core/error.hpp"
#include "core/quiet_thread.hpp"

namespace tacc {

Joining::Joining(taccComm& comm, const char* function, Make make) {
  try {
    thread_ = startQuietThread<std::jthread>([this, &comm, function, make = std::move(make)](
                                                 const std::stop_token& stop) { run(stop, comm, function, make); });
  } catch (const std::system_error& error) {
    fail(taccSystemError, "cannot start the thread that joins: {}", error.what());
  }
}

void Joining::run(const std::stop_token& stop, taccComm& comm, const char* function, const Make& make) noexcept {
  try {
    std::unique_ptr<Communicator> made = make(stop);
    if (completeHandle(comm, made)) return;
    made->abort(fmt::format("taccCommAbort was called on rank {}", comm.rank.load()));
  } catch (...) {
    result_.store(recordException(function, &comm));
    Life life = Life::joining;
    comm.life.compare_exchange_strong(life, Life::notJoined);
  }
}

}  // namespace tacc
