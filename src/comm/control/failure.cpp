#include "comm/control/failure.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/exceptions.hpp"

namespace tacc {
namespace {

constexpr std::size_t textLimit = 4096;

}  // namespace

Payload describeLackOfMemory() { return describeFailure(Error(taccSystemError, "out of memory")); }

std::string textFrom(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "(no word)";
  std::string text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), textLimit));
  std::ranges::replace_if(
      text, [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == '\x7f'; }, '?');
  return text;
}

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
  if (message.payload.size() < sizeof result) return Error(taccRemoteError, "another rank failed and did not say why");
  std::memcpy(&result, message.payload.data(), sizeof result);
  if (result == taccSuccess || result >= taccNumResults) result = taccRemoteError;
  return Error(static_cast<taccResult_t>(result), textFrom(std::span(message.payload).subspan(sizeof result)));
}

Error remoteFailureIn(const Message& message) {
  const Error theirs = failureIn(message);
  return isOwnTrouble(theirs) ? Error(taccRemoteError, theirs.what()) : theirs;
}

}  // namespace tacc
