// What devices of an InfiniBand network say of themselves, and speeds of links.
#include <algorithm>
#include <array>

#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/ibnet.hpp"

namespace tacc {
namespace {

/// Data of one lane in bytes/s: signalling rate times coding (8/10 up to QDR, 64/66 up to EDR; later rates are named
/// after their data), InfiniBand Architecture Specification volume 2.
struct Speed {
  std::string_view name;
  double lane;
};
constexpr std::array<Speed, 9> speeds = {{{"SDR", 0.25e9},
                                          {"DDR", 0.5e9},
                                          {"QDR", 1e9},
                                          {"FDR10", 1.25e9},
                                          {"FDR", 14.0625e9 * 64 / 66 / 8},
                                          {"EDR", 3.125e9},
                                          {"HDR", 6.25e9},
                                          {"NDR", 12.5e9},
                                          {"XDR", 25e9}}};

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// "mlx5_0", "hfi1_1", "HCA-2": which card it is in its host.
bool isCardName(std::string_view word) {
  for (const std::string_view start : {"mlx4_", "mlx5_", "hfi1_", "qib", "HCA-"}) {
    if (!word.starts_with(start)) continue;
    word.remove_prefix(start.size());
    return std::all_of(word.begin(), word.end(), isDigit);
  }
  return false;
}

/// What a card is called that nobody gave the name of its host, or a host that nobody gave a name.
bool namesNobody(std::string_view first, std::string_view description) {
  const bool isModel =
      first.size() > 2 && first.starts_with("MT") && std::all_of(first.begin() + 2, first.end(), isDigit);
  return isModel || isCardName(first) || first == "localhost" || first.starts_with("localhost.") || first == "(none)" ||
         description.find("Mellanox Technologies") != std::string_view::npos;
}

}  // namespace

double infinibandBandwidth(std::string_view text) {
  const std::size_t times = text.find('x');
  if (times == std::string_view::npos) return 0;
  const auto lanes = parseInteger(text.substr(0, times), 1, 12);
  const auto speed =
      std::find_if(speeds.begin(), speeds.end(), [&](const Speed& one) { return one.name == text.substr(times + 1); });
  return !lanes || speed == speeds.end() ? 0 : static_cast<double>(*lanes) * speed->lane;
}

std::string hostInDescription(std::string_view description) {
  const std::vector<std::string_view> words = wordsOf(description);
  if (!words.empty() && namesNobody(words.front(), description)) return "";
  std::string name(words.empty() ? std::string_view() : words.front().substr(0, longestHostName));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return c < '!' || c > '~' || c == ',' || c == '[' || c == ']' || c == '"'; }, '_');
  return name;
}

std::string switchInDescription(std::string_view description) {
  if (const std::size_t semicolon = description.find(';'); semicolon != std::string_view::npos) {
    description.remove_prefix(semicolon + 1);
    description = description.substr(0, description.find(':'));
  }
  std::string name(description.substr(0, longestHostName));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return c < ' ' || c > '~' || c == ',' || c == '[' || c == ']' || c == '"'; }, '_');
  return name;
}

void describeDevice(Fabric::Device& device, bool isSwitch, std::string_view description) {
  const bool isInside = !isSwitch && description.find("Aggregation Node") != std::string_view::npos;
  device.kind = isSwitch ? Fabric::Kind::switching : isInside ? Fabric::Kind::inside : Fabric::Kind::card;
  device.name = isSwitch ? switchInDescription(description) : isInside ? "" : hostInDescription(description);
}

}  // namespace tacc
