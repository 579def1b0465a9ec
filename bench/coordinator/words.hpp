#pragma once

#include <string>
#include <vector>

namespace tacc::bench {

/// "a, b, c".
inline std::string joinWords(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

}  // namespace tacc::bench
