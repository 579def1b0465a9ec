// All modes of EASGD: from here the API, the bench, the tests and the documents have their names.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "easgd/exchange.hpp"

namespace tacc {

struct EasgdMode {
  taccEasgdMode_t mode;
  std::string_view name;  // as on command lines
  bool isSynchronous;     // all ranks take part in every exchange, and the same run gives the same bits again
  bool movesTogether;     // ranks move the center at the same time, by the same old value
  bool hasWires;          // 16 bits on the wire are possible
  bool overlaps;
  std::unique_ptr<CenterExchange> (*make)(const ExchangeParts& parts);  // collective
};

/// In the order of taccEasgdMode_t.
std::span<const EasgdMode> easgdModes();
/// `mode` must be valid.
const EasgdMode& easgdMode(taccEasgdMode_t mode);

}  // namespace tacc
