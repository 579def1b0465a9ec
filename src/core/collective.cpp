#include "core/collective.hpp"

#include <iterator>

namespace tacc {

namespace {
constexpr std::string_view names[] = {"allreduce", "broadcast", "reduce",  "allgather", "reducescatter",
                                      "alltoall",  "gather",    "scatter", "scan",      "exscan"};
static_assert(std::size(names) == collectiveCount);
}  // namespace

std::string_view nameOf(Collective collective) noexcept {
  const auto index = static_cast<int>(collective);
  return index < collectiveCount ? names[index] : std::string_view("barrier");
}

std::optional<Collective> collectiveNamed(std::string_view name) noexcept {
  for (int i = 0; i < collectiveCount; ++i) {
    if (names[i] == name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

}  // namespace tacc
