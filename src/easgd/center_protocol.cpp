#include "easgd/center_protocol.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "comm/control/failure.hpp"
#include "core/exceptions.hpp"

namespace tacc {
namespace {

constexpr std::size_t longestText = 4096;

bool carriesWeights(CenterAction action) { return action == CenterAction::move || action == CenterAction::write; }
bool bringsNumbers(CenterAction action) { return action == CenterAction::move || action == CenterAction::read; }

}  // namespace

std::optional<CenterRequest> centerRequestIn(const Message& message, std::size_t count) noexcept {
  const auto request = headIn<CenterRequest>(message);
  if (message.kind != MessageKind::centerRequest || !request) return std::nullopt;
  const std::size_t numbers = message.payload.size() - sizeof(CenterRequest);
  if (request->action == CenterAction::count)
    return numbers == 0 && request->elements == 0 && request->first == 0 ? request : std::nullopt;
  if (request->action < CenterAction::move || request->action > CenterAction::write) return std::nullopt;
  if (request->first >= count || request->first % pieceElements != 0) return std::nullopt;
  if (request->elements != elementsAt(count, request->first)) return std::nullopt;
  const std::size_t expected = carriesWeights(request->action) ? request->elements * sizeof(float) : 0;
  if (numbers != expected) return std::nullopt;
  if (request->action == CenterAction::move && !std::isfinite(request->alpha)) return std::nullopt;
  return request;
}

std::optional<CenterReply> centerReplyIn(const Message& message, const CenterRequest& request) noexcept {
  const auto reply = headIn<CenterReply>(message);
  if (message.kind != MessageKind::centerReply || !reply) return std::nullopt;
  const std::size_t numbers = bringsNumbers(request.action) ? request.elements * sizeof(float) : 0;
  const bool fits = reply->operation == request.operation && reply->first == request.first &&
                    reply->elements == request.elements && message.payload.size() == sizeof(CenterReply) + numbers;
  return fits ? reply : std::nullopt;
}

Payload describeCenterFailure(std::uint32_t operation, const Error& error) {
  const CenterFailure head{operation, static_cast<std::uint32_t>(error.result())};
  const std::string_view text = std::string_view(error.what()).substr(0, longestText);
  std::vector<std::byte> bytes(sizeof head + text.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, text.data(), text.size());
  return makePayload(std::move(bytes));
}

Error centerFailureIn(const Message& message) {
  const auto head = headIn<CenterFailure>(message);
  if (!head) return Error(taccRemoteError, "the center's process failed and did not say why");
  const bool known = head->result != taccSuccess && head->result < taccNumResults;
  const Error theirs(known ? static_cast<taccResult_t>(head->result) : taccRemoteError,
                     textFrom(std::span(message.payload).subspan(sizeof(CenterFailure))));
  return isOwnTrouble(theirs) ? Error(taccRemoteError, theirs.what()) : theirs;
}

}  // namespace tacc
