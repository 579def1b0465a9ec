#include "worker/element.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tacc::bench {
namespace {

struct TypeFacts {
  const char* name;
  size_t bytes;
  int exactBits;
};

constexpr std::array<TypeFacts, numTypes> types = {{{"int8", 1, 7},
                                                    {"uint8", 1, 8},
                                                    {"int32", 4, 31},
                                                    {"uint32", 4, 32},
                                                    {"int64", 8, 53},
                                                    {"uint64", 8, 53},
                                                    {"half", 2, 11},
                                                    {"float", 4, 24},
                                                    {"double", 8, 53},
                                                    {"bfloat16", 2, 8}}};
constexpr std::array<const char*, numOps> ops = {"sum", "prod", "max", "min", "avg"};

template <typename T>
void storeInteger(double value, void* at) {
  const T element = static_cast<T>(static_cast<int64_t>(value));
  std::memcpy(at, &element, sizeof(T));
}

template <typename T>
T loadAs(const void* at) {
  T element;
  std::memcpy(&element, at, sizeof(T));
  return element;
}

/// Binary16 of a value that is zero or normal there, which all test values are.
uint16_t halfBits(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  // nearbyint rounds to nearest even; a significand that rounds up to 2048 carries into the exponent by the addition.
  const auto significand = static_cast<int>(std::nearbyint(std::ldexp(fraction, 11)));
  const int bits = ((exponent + 13) << 10) + significand;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (bits >= 0x7c00 ? 0x7c00 : bits));
}

double halfValue(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                 : exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

uint16_t bfloat16Bits(double value) {
  const float single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

double bfloat16Value(uint16_t upper) {
  const uint32_t bits = static_cast<uint32_t>(upper) << 16;
  float single;
  std::memcpy(&single, &bits, sizeof(single));
  return single;
}

}  // namespace

size_t elementSize(taccDataType_t type) { return types[type].bytes; }
const char* typeName(taccDataType_t type) { return types[type].name; }
const char* opName(taccRedOp_t op) { return ops[op]; }
int exactBits(taccDataType_t type) { return types[type].exactBits; }

std::optional<taccDataType_t> typeFromName(std::string_view name) {
  for (size_t i = 0; i < types.size(); ++i)
    if (name == types[i].name) return static_cast<taccDataType_t>(i);
  return std::nullopt;
}

std::optional<taccRedOp_t> opFromName(std::string_view name) {
  for (size_t i = 0; i < ops.size(); ++i)
    if (name == ops[i]) return static_cast<taccRedOp_t>(i);
  return std::nullopt;
}

bool isFloating(taccDataType_t type) {
  return type == taccFloat16 || type == taccFloat32 || type == taccFloat64 || type == taccBfloat16;
}

void storeElement(taccDataType_t type, double value, void* at) {
  switch (type) {
    case taccInt8:
      return storeInteger<int8_t>(value, at);
    case taccUint8:
      return storeInteger<uint8_t>(value, at);
    case taccInt32:
      return storeInteger<int32_t>(value, at);
    case taccUint32:
      return storeInteger<uint32_t>(value, at);
    case taccInt64:
      return storeInteger<int64_t>(value, at);
    case taccUint64:
      return storeInteger<uint64_t>(value, at);
    case taccFloat32: {
      const float element = static_cast<float>(value);
      std::memcpy(at, &element, sizeof(element));
      return;
    }
    case taccFloat64:
      std::memcpy(at, &value, sizeof(value));
      return;
    default:
      break;
  }
  const uint16_t bits = type == taccFloat16 ? halfBits(value) : bfloat16Bits(value);
  std::memcpy(at, &bits, sizeof(bits));
}

double loadElement(taccDataType_t type, const void* at) {
  switch (type) {
    case taccInt8:
      return loadAs<int8_t>(at);
    case taccUint8:
      return loadAs<uint8_t>(at);
    case taccInt32:
      return loadAs<int32_t>(at);
    case taccUint32:
      return loadAs<uint32_t>(at);
    case taccInt64:
      return static_cast<double>(loadAs<int64_t>(at));
    case taccUint64:
      return static_cast<double>(loadAs<uint64_t>(at));
    case taccFloat32:
      return loadAs<float>(at);
    case taccFloat64:
      return loadAs<double>(at);
    case taccFloat16:
      return halfValue(loadAs<uint16_t>(at));
    default:
      return bfloat16Value(loadAs<uint16_t>(at));
  }
}

}  // namespace tacc::bench
