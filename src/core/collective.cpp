#include "core/collective.hpp"

namespace tacc {

std::optional<Collective> collectiveNamed(std::string_view name) noexcept {
  for (int i = 0; i < collectiveCount; ++i)
    if (collectiveShapes[static_cast<std::size_t>(i)].name == name) return static_cast<Collective>(i);
  return std::nullopt;
}

}  // namespace tacc
