#include "core/collective.hpp"

#include <string>

#include "core/error.hpp"

namespace tacc {

std::optional<Collective> collectiveNamed(std::string_view name) noexcept {
  for (int i = 0; i < collectiveCount; ++i)
    if (collectiveShapes[static_cast<std::size_t>(i)].name == name) return static_cast<Collective>(i);
  return std::nullopt;
}

Collective requireCollective(std::string_view name) {
  const std::optional<Collective> known = collectiveNamed(name);
  if (known) return *known;
  std::string names;
  for (int i = 0; i < collectiveCount; ++i)
    names.append(i == 0 ? "" : ", ").append(collectiveShapes[static_cast<std::size_t>(i)].name);
  fail(taccInvalidArgument, "there is no collective \"{}\"; there are {}", name, names);
}

}  // namespace tacc
