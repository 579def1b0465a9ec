#include "contestants/id_text.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace tacc::bench {

std::string toHex(const taccUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

taccUniqueId fromHex(const std::string& text) {
  taccUniqueId id;
  if (text.size() != 2 * sizeof(id.internal)) throw std::invalid_argument("malformed unique id");
  for (size_t i = 0; i < sizeof(id.internal); ++i)
    id.internal[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return id;
}

}  // namespace tacc::bench
