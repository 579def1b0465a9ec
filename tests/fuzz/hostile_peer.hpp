// A rank of the job that knows the secret and lies: it joins as it should and then sends what the input says.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>

#include "comm/bootstrap/branches.hpp"
#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "fuzz/target.hpp"
#include "transports/file_descriptor.hpp"

namespace tacc::fuzz {

/// A payload that the input describes: a form, and what it consists of.
inline std::vector<std::byte> payloadIn(Input& input, int ranks) {
  std::vector<std::byte> payload;
  const auto add = [&payload](const void* data, std::size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(data);
    payload.insert(payload.end(), begin, begin + bytes);
  };
  const auto rank = [&] {
    const int chosen = input.below(ranks + 4);
    return chosen < ranks + 2 ? static_cast<std::uint32_t>(chosen) : input.value<std::uint32_t>();
  };
  switch (input.below(6)) {
    case 0: {  // bytes
      const auto some = input.bytes(input.byte());
      add(some.data(), some.size());
      break;
    }
    case 1:  // arrivals
      for (int left = input.below(4); left > 0; --left) {
        Arrival arrival{introduceSelf(ranks, 0), 0, 1};
        arrival.who.rank = rank();
        arrival.who.stays = input.below(2) == 0 ? 0U : 1U;
        if (input.byte() == 0) arrival.who.ranks = rank();
        arrival.parent = rank();
        add(&arrival, sizeof arrival);
      }
      break;
    case 2:  // parts
      for (int left = input.below(4); left > 0; --left) {
        Message part;
        part.kind = input.below(2) == 0 ? MessageKind::gather : MessageKind::descriptor;
        part.payload.resize(input.below(2) == 0 ? sizeof(std::uint64_t) : input.byte());
        for (std::byte& byte : part.payload) byte = std::byte{input.byte()};
        std::vector<std::byte> bytes;
        appendPart(bytes, static_cast<int>(rank()), part);
        if (input.byte() == 0 && bytes.size() > 8) bytes[8] = std::byte{input.byte()};
        add(bytes.data(), bytes.size());
      }
      break;
    case 3:  // words, as sizes are
      for (int left = input.below(8); left > 0; --left) {
        const auto word = input.below(2) == 0 ? input.byte() : input.value<std::uint64_t>();
        add(&word, sizeof word);
      }
      break;
    case 4: {  // the end of joining: a way of ranks
      const int length = input.below(6);
      const std::uint32_t head[2] = {input.below(2) == 0 ? 1U : 0U, static_cast<std::uint32_t>(length)};
      add(head, sizeof head);
      payload.resize(payload.size() + sizeof(InetAddress::V6));
      for (int i = 0; i < length; ++i) {
        const std::uint32_t one = rank();
        add(&one, sizeof one);
      }
      break;
    }
    default:  // many zeros
      payload.resize(64U * input.byte());
  }
  return payload;
}

class HostilePeer {
 public:
  explicit HostilePeer(FileDescriptor socket) : channel_(std::move(socket)) { channel_.trust(); }

  bool isOpen() const noexcept { return channel_.fd() >= 0; }
  void close() { channel_ = Channel(FileDescriptor()); }

  /// Answers the challenge of whoever admits ranks, if it has come.
  void answer(const Secret& secret, const Introduction& who) {
    if (const auto message = next())
      if (const auto challenge = valueIn<Challenge>(*message))
        send(MessageKind::hello, *payloadOf(answerChallenge(secret, *challenge, who)));
  }
  /// Admits the rank at the other end, if its answer has come.
  void admit(const Secret& secret, const Challenge& challenge, const Introduction& self) {
    if (const auto message = next())
      if (const auto hello = valueIn<Hello>(*message))
        send(MessageKind::welcome, *payloadOf(answerHello(secret, challenge, *hello, self)));
  }
  void send(MessageKind kind, std::vector<std::byte> payload, int descriptors = 0) {
    if (!isOpen()) return;
    const std::vector<int> passed(static_cast<std::size_t>(descriptors), channel_.fd());
    channel_.queue(kind, makePayload(std::move(payload)), passed);
    (void)channel_.flush();
  }
  void sendRaw(std::span<const std::uint8_t> bytes) {
    if (isOpen()) (void)!::send(channel_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  /// Throws away what came.
  void listen() {
    while (next()) continue;
  }

 private:
  std::optional<Message> next() {
    if (!isOpen()) return std::nullopt;
    if (!channel_.receive()) {
      close();
      return std::nullopt;
    }
    return channel_.take();
  }

  Channel channel_;
};

}  // namespace tacc::fuzz
