#include "transports/refusals.hpp"

#include <utility>

#include "core/log.hpp"

namespace tacc {
namespace {

constexpr std::size_t mostLogged = 256;

}  // namespace

void Refusals::note(std::string_view from, bool isTcp, std::string_view why) noexcept {
  ++count_;
  try {
    last_ = fmt::format("from {}: {}", from, why);
    // One that tries again comes from another port each time.
    std::string who = fmt::format("{} {}", isTcp ? from.substr(0, from.rfind(':')) : from, why);
    if (logged_.size() >= mostLogged || !logged_.insert(std::move(who)).second) return;
    log(LogLevel::warn, rank_, "refused a connection {}", last_);
  } catch (...) {  // out of memory: a stranger is no reason to fail
  }
}

std::string Refusals::describe() const {
  if (count_ == 0) return "";
  return fmt::format("; {} connections were refused, the last {}", count_, last_);
}

}  // namespace tacc
