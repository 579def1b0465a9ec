// A rank that sends any bytes over its data connection: messages land where they are expected, or are kept, or are an
// Error; what is kept is bounded by what came.
//
// Input: steps. 0: a receive is posted (tag, capacity in steps of 8); 1: bytes come (how many, they); 2: a message of
// the right form (tag, length); 3: all is read.
#include "transports/tcp_stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <deque>

#include "base/error.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr int steps = 4;
constexpr std::size_t mostReceives = 64;

struct Receive {
  std::vector<std::byte> data;
  NetworkRequest request;
};

void feed(Input input) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "no socket pair");
  const FileDescriptor peer(ends[0]);
  std::deque<Receive> receives;  // before those that hold pointers into it
  TcpStream stream;
  TcpInbox inbox(0, 1);
  stream.open(FileDescriptor(ends[1]));
  bool moved = false;
  const auto send = [&](const void* data, std::size_t bytes) {
    (void)!::send(peer.get(), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  };
  while (!input.isOver()) {
    switch (input.below(steps)) {
      case 0: {
        if (receives.size() == mostReceives) return;
        const std::uint32_t tag = input.byte() % 8U;
        Receive& one = receives.emplace_back();
        one.data.resize(8U * input.byte());
        inbox.post(tag, one.data.data(), one.data.size(), one.request);
        break;
      }
      case 1: {
        const auto some = input.bytes(input.byte());
        send(some.data(), some.size());
        break;
      }
      case 2: {
        const std::uint32_t head[2] = {input.byte() % 8U, input.value<std::uint16_t>()};
        send(head, sizeof head);
        const std::vector<std::byte> data(head[1] % 4096);
        send(data.data(), data.size());
        break;
      }
      default:
        if (stream.receive(inbox, false, moved) == TcpStream::State::closed) return;
        if (stream.isOwing()) stream.acknowledge();
    }
  }
  (void)stream.receive(inbox, false, moved);
  for (const Receive& one : receives)
    require(!one.request.done || one.request.bytes <= one.data.size(), "more landed than there was room for");
}

}  // namespace

std::vector<Bytes> seeds() {
  Output expected, kept, raw;
  expected.byte(0).byte(1).byte(4).byte(0).byte(2).byte(255).byte(2).byte(1).value(std::uint16_t{32}).byte(3);
  expected.byte(2).byte(2).value(std::uint16_t{2040}).byte(3);
  kept.byte(2).byte(3).value(std::uint16_t{100}).byte(3).byte(2).byte(4).value(std::uint16_t{0}).byte(3);
  kept.byte(0).byte(3).byte(200).byte(0).byte(4).byte(0).byte(3);
  const std::uint32_t head[2] = {5, 16};
  raw.byte(1).byte(8).range(head).byte(0).byte(5).byte(2).byte(1).byte(16).range(Bytes(16, 7)).byte(3);
  return {expected.take(), kept.take(), raw.take()};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tacc::fuzz::feed({data, size});
  } catch (const tacc::Error& error) {
    tacc::fuzz::require(*error.what() != '\0', "an Error without a word");
  }
  return 0;
}
