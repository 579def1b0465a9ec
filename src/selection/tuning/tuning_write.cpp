#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "selection/tuning/tuning_file.hpp"

namespace tacc {
namespace {

constexpr std::string_view head =
    "# Measured by tacc_tune. docs/use/tuning.md says what the keys mean; times are in microseconds, bytes are those "
    "of a\n"
    "# call's `count` elements.\n";

std::string lineOf(const TunedSize& size) {
  std::string text =
      fmt::format("  {{ bytes = {}, algorithm = \"{}\", us = {:.2f}", size.bytes, size.algorithm, size.seconds * 1e6);
  if (!size.next.empty()) text += fmt::format(", next = \"{}\", next_us = {:.2f}", size.next, size.nextSeconds * 1e6);
  if (!size.untuned.empty())
    text += fmt::format(", untuned = \"{}\", untuned_us = {:.2f}", size.untuned, size.untunedSeconds * 1e6);
  return text + " },\n";
}

/// One number where all hosts are alike.
std::string folded(const std::vector<int>& ranksOfHost) {
  const bool isEven = std::ranges::adjacent_find(ranksOfHost, std::ranges::not_equal_to()) == ranksOfHost.end();
  std::string text;
  for (std::size_t host = 0; host < (isEven ? 1 : ranksOfHost.size()); ++host)
    text += (host == 0 ? "" : ", ") + std::to_string(ranksOfHost[host]);
  return text;
}

}  // namespace

std::string tuningToToml(const Tuning& tuning) {
  const TuningPlace& place = tuning.place;
  std::string text(head);
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "format = {}\nversion = \"{}\"\n\n[place]\n", tuningFormat, place.version);
  fmt::format_to(out, "transport = \"{}\"\ntopology = \"{}\"\n", place.transport,
                 place.isMeasured ? "measured" : fmt::format("{:016x}", place.topology));
  fmt::format_to(out, "hosts = {}\nranks_per_host = [{}]\n", place.ranksOfHost.size(), folded(place.ranksOfHost));
  fmt::format_to(out, "latency_us = {:.2f}\nmegabytes_per_second = {:.3f}\n", place.speed.latency * 1e6,
                 place.speed.bytesPerSecond * 1e-6);
  for (const TunedCollective& measured : tuning.collectives) {
    fmt::format_to(out, "\n[{}]\nsizes = [\n", nameOf(measured.collective));
    for (const TunedSize& size : measured.sizes) text += lineOf(size);
    text += "]\n";
  }
  return text;
}

}  // namespace tacc
