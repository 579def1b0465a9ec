#pragma once

#include <cstddef>
#include <vector>

namespace tacc::tools {

/// Who runs when: for each repetition the contestants, by number, in the order of their turns. Whoever runs finds the
/// machine as the one before has left it (the buffers of links, the caches), so over all repetitions, their borders
/// included, each follows each of the others as often as any other does, or once more or less (of more than six:
/// nearly); nobody follows himself. As far as this leaves it open, each runs as often in every place.
std::vector<std::vector<std::size_t>> turnsOf(std::size_t contestants, int repetitions);

}  // namespace tacc::tools
