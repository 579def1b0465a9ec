#include "comm/bootstrap/completion.hpp"

#include <cstdint>
#include <cstring>

#include "core/error.hpp"

namespace tacc {
namespace {

struct Head {
  std::uint32_t allUnix;
  std::uint32_t length;  // of the route, whose ranks follow
  InetAddress::V6 address;
};

}  // namespace

Payload payloadOf(const Completion& completion) {
  const Head head{completion.allUnix ? 1U : 0U, static_cast<std::uint32_t>(completion.route.size()),
                  completion.address};
  std::vector<std::byte> bytes(sizeof head + completion.route.size() * sizeof(int));
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, completion.route.data(), bytes.size() - sizeof head);
  return makePayload(std::move(bytes));
}

Completion completionIn(const Message& message) {
  Head head;
  if (message.payload.size() >= sizeof head) {
    std::memcpy(&head, message.payload.data(), sizeof head);
    if (head.length > 0 && message.payload.size() == sizeof head + std::size_t{head.length} * sizeof(int)) {
      Completion completion{head.allUnix != 0, head.address, std::vector<int>(head.length)};
      std::memcpy(completion.route.data(), message.payload.data() + sizeof head, head.length * sizeof(int));
      return completion;
    }
  }
  fail(taccInternalError, "init: {} bytes came where the end of joining was due", message.payload.size());
}

}  // namespace tacc
