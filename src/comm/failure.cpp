#include "comm/failure.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace tacc {
namespace {

constexpr std::size_t textLimit = 4096;

}  // namespace

Payload describeLackOfMemory() { return describeFailure(Error(taccSystemError, "out of memory")); }

Payload describeFailure(const Error& error) {
  const std::uint32_t result = static_cast<std::uint32_t>(error.result());
  const std::string_view text = std::string_view(error.what()).substr(0, textLimit);
  std::vector<std::byte> bytes(sizeof result + text.size());
  std::memcpy(bytes.data(), &result, sizeof result);
  std::memcpy(bytes.data() + sizeof result, text.data(), text.size());
  return makePayload(std::move(bytes));
}

Error failureIn(const Message& message) {
  std::uint32_t result = taccInternalError;
  if (message.payload.size() < sizeof result)
    return Error(taccInternalError, "another rank failed and did not say why");
  std::memcpy(&result, message.payload.data(), sizeof result);
  if (result == taccSuccess || result >= taccNumResults) result = taccRemoteError;
  const auto* text = reinterpret_cast<const char*>(message.payload.data()) + sizeof result;
  return Error(static_cast<taccResult_t>(result), std::string(text, message.payload.size() - sizeof result));
}

}  // namespace tacc
