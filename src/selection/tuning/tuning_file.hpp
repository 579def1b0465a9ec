// Measurements as a TOML file that people read; docs/use/tuning.md describes it. What is saved loads as an equal value,
// to the digits that are written.
#pragma once

#include <string>
#include <string_view>

#include "selection/tuning/tuning.hpp"

namespace tacc {

/// The format of the file: a reader that knows less would misunderstand what was added.
inline constexpr int tuningFormat = 1;

/// `origin` (the file's name) stands in messages, with line and column. Throws Error (taccInvalidArgument) for what is
/// no TOML, unknown keys (naming the nearest right one), another format, sizes that do not ascend, names of algorithms
/// that do not exist, and figures that make no sense.
Tuning tuningFromToml(std::string_view text, const std::string& origin);

/// One table for each collective, one line for each size.
std::string tuningToToml(const Tuning& tuning);

}  // namespace tacc
