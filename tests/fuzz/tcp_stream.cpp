// A rank that sends any bytes over its data connection: messages land where they are expected, or are kept, or are an
// Error; what is kept is bounded by what came.
//
// Input: steps. 0: a receive is posted (tag, capacity in steps of 8); 1: bytes come (how many, they); 2: a message of
// the right form (tag, length); 3: all is read; 4: a channel is closed, and another opened; 5: this rank sends. Tags of
// 4 and more are of a second channel. The first byte says whether channels share the connection.
#include "transports/tcp/tcp_stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <deque>

#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr int steps = 6;
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
  std::vector<NetworkRequest> sends(mostReceives);
  TcpStream stream;
  TcpInbox inbox(1);
  TcpChannels channels;
  TcpChannel* open[2] = {&channels.open(0, 0, {0, 1}), &channels.open(1, 0, {0, 1})};
  std::size_t came = 0, sent = 0;
  if (input.byte() % 2 == 1) inbox.share();
  stream.open(FileDescriptor(ends[1]));
  bool moved = false;
  const auto send = [&](const void* data, std::size_t bytes) {
    came += bytes;
    (void)!::send(peer.get(), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  };
  while (!input.isOver()) {
    switch (input.below(steps)) {
      case 0: {
        if (receives.size() == mostReceives) return;
        const std::uint32_t tag = input.byte() % 8U;
        Receive& one = receives.emplace_back();
        one.data.resize(8U * input.byte());
        inbox.post(*open[tag / 4], tag, one.data.data(), one.data.size(), one.request);
        break;
      }
      case 1: {
        const auto some = input.bytes(input.byte());
        send(some.data(), some.size());
        break;
      }
      case 2: {
        const std::uint32_t tag = input.byte() % 8U;
        const std::uint32_t head[3] = {tag, open[tag / 4]->number, input.value<std::uint16_t>()};
        send(head, sizeof head);
        const std::vector<std::byte> data(head[2] % 4096);
        send(data.data(), data.size());
        break;
      }
      case 4: {
        TcpChannel*& one = open[input.byte() % 2U];
        inbox.close(*one);
        require(stream.abandon(*one), "no memory");
        channels.close(*one);
        one = &channels.open(channels.next(), 0, {0, 1});
        break;
      }
      case 5: {
        static const std::vector<std::byte> data(5000);
        TcpChannel& channel = *open[input.byte() % 2U];
        if (sent == sends.size()) return;
        stream.send(channel, 1, data.data(), data.size(), 0, sends[sent++]);
        if (stream.flush() == TcpStream::State::closed) return;
        break;
      }
      default:
        if (stream.receive(inbox, channels, false, moved) == TcpStream::State::closed) return;
        if (stream.isOwing()) stream.acknowledge();
        while (const auto pause = inbox.takePause()) stream.send(*pause);
    }
    require(inbox.memory() <= 2 * 64 * 1024 + 16 * came, "more memory than what came takes");
  }
  (void)stream.receive(inbox, channels, false, moved);
  for (const Receive& one : receives)
    require(!one.request.done || one.request.bytes <= one.data.size(), "more landed than there was room for");
}

}  // namespace

std::vector<Bytes> seeds() {
  Output expected, kept, raw, shared;
  expected.byte(0).byte(0).byte(1).byte(4).byte(0).byte(2).byte(255).byte(2).byte(1).value(std::uint16_t{32}).byte(3);
  expected.byte(2).byte(2).value(std::uint16_t{2040}).byte(3);
  kept.byte(0).byte(2).byte(3).value(std::uint16_t{100}).byte(3).byte(2).byte(4).value(std::uint16_t{0}).byte(3);
  kept.byte(0).byte(3).byte(200).byte(0).byte(4).byte(0).byte(3);
  const std::uint32_t head[3] = {5, 1, 16}, signal[3] = {1, TcpChannels::signals, 1};
  raw.byte(1).byte(1).byte(12).range(head).byte(0).byte(5).byte(2).byte(1).byte(16).range(Bytes(16, 7)).byte(3);
  shared.byte(1).byte(2).byte(1).value(std::uint16_t{900}).byte(1).byte(12).range(signal).byte(3).byte(5).byte(1);
  shared.byte(4).byte(1).byte(4).byte(0).byte(2).byte(6).value(std::uint16_t{50}).byte(3);
  return {expected.take(), kept.take(), raw.take(), shared.take()};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tacc::fuzz::mayRefuse([&] { tacc::fuzz::feed({data, size}); });
}
