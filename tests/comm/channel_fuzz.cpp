// Whatever bytes come over a connection: the parser of messages neither crashes, nor hangs, nor makes up bytes.
//
// With clang, -fsanitize=fuzzer and -DTACC_FUZZ_ENGINE this is a fuzz target. Else it has a main of its own that takes
// conversations as the bootstrap has them, and mutations of these from a fixed seed: `channel_fuzz [MUTATIONS [SEED]]`.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/channel.hpp"
#include "comm/failure.hpp"
#include "comm/handshake.hpp"

namespace tacc {
namespace {

using Bytes = std::vector<std::uint8_t>;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "channel_fuzz: %s\n", what);
  std::abort();
}

std::array<FileDescriptor, 2> makePair() {
  std::array<int, 2> ends{};
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "no socket pair");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

/// What the bootstrap does with a message.
void use(const Message& message) {
  (void)valueIn<Challenge>(message);
  if (const auto hello = valueIn<Hello>(message)) {
    (void)describePlace(hello->who, true);
    (void)isGenuine(Secret{}, Challenge{}, *hello);
  }
  if (message.kind == MessageKind::failure) (void)failureIn(message);
}

/// Gives the bytes in pieces of `piece`; the channel trusts the other end after `strangers` messages.
void feed(const std::uint8_t* data, std::size_t size, std::size_t piece, std::size_t strangers) {
  std::array<FileDescriptor, 2> ends = makePair();
  Channel channel(std::move(ends[1]));
  std::size_t messages = 0;
  std::size_t taken = 0;
  bool open = true;
  if (strangers == 0) channel.trust();
  for (std::size_t sent = 0; sent < size && open;) {
    const ssize_t count = ::send(ends[0].get(), data + sent, std::min(piece, size - sent), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<std::size_t>(count);
    // A stranger gets one message read at a time: what follows it stays in the socket until it is taken.
    for (std::size_t before = messages + 1; before != messages && open;) {
      before = messages;
      open = channel.receive();
      while (const auto message = channel.take()) {
        ++messages;
        taken += message->payload.size();
        check(messages > strangers || message->payload.size() <= 256, "a stranger's message is too long");
        check(message->descriptors.empty(), "descriptors out of nothing");
        use(*message);
        if (messages == strangers) channel.trust();
      }
    }
    check(taken <= sent, "more bytes were taken than came");
  }
  if (!open) {
    check(!channel.receive(), "a connection that broke opened again");
    check(!channel.whyClosed().empty(), "no reason");
  }
}

}  // namespace
}  // namespace tacc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  try {
    tacc::feed(data + 2, size - 2, std::size_t{1} + data[0], data[1] % 4);
  } catch (const tacc::Error&) {
    // A sentence is a fine answer.
  }
  return 0;
}

#ifndef TACC_FUZZ_ENGINE

namespace tacc {
namespace {

/// The bytes of some messages, as a channel sends them.
Bytes bytesOf(const std::vector<const Message*>& messages) {
  std::array<FileDescriptor, 2> ends = makePair();
  Channel channel(std::move(ends[0]));
  for (const Message* message : messages) channel.queue(message->kind, makePayload(message->payload));
  check(channel.flush() && !channel.hasOutput(), "the conversation does not fit the socket");
  Bytes bytes(1 << 18);
  const ssize_t count = ::recv(ends[1].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

template <class Value>
Message messageOf(MessageKind kind, const Value& value) {
  return {kind, *payloadOf(value), {}};
}

std::vector<Bytes> makeCorpus() {
  const Secret secret{};
  const Challenge challenge{makeNonce()};
  const Hello hello = answerChallenge(secret, challenge, introduceSelf(4, 1));
  const Welcome welcome = answerHello(secret, challenge, hello, introduceSelf(4, 0));
  const Message question = messageOf(MessageKind::challenge, challenge);
  const Message greeting = messageOf(MessageKind::hello, hello);
  const Message answer = messageOf(MessageKind::welcome, welcome);
  const Message failure{MessageKind::failure, *describeFailure(Error(taccTimeout, std::string(300, 'x'))), {}};
  const Message part{MessageKind::gather, std::vector<std::byte>(5000), {}};
  const Message nothing{MessageKind::complete, {}, {}};
  std::vector<Bytes> corpus;
  const std::vector<std::vector<const Message*>> conversations = {{&greeting, &part, &part},
                                                                  {&question, &answer, &nothing},
                                                                  {&question, &failure},
                                                                  {&part},
                                                                  {&nothing, &nothing, &nothing, &part, &failure}};
  for (const auto& messages : conversations) {
    for (const std::uint8_t piece : std::array<std::uint8_t, 4>{0, 6, 23, 255}) {
      Bytes bytes = bytesOf(messages);
      bytes.insert(bytes.begin(), {piece, static_cast<std::uint8_t>(corpus.size() % 4)});
      corpus.push_back(std::move(bytes));
    }
  }
  corpus.emplace_back(Bytes(600, 0));
  corpus.emplace_back(Bytes(600, 0xff));
  return corpus;
}

/// A few changes of the kinds that break parsers: bits, whole fields of the header, lengths, pieces lost and repeated.
Bytes mutate(Bytes bytes, std::mt19937& random) {
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  constexpr std::array<std::uint32_t, 8> special = {0, 1, 255, 256, 257, 0x7fffffff, 0x80000000, 0xffffffff};
  for (std::size_t changes = 1 + below(4); changes > 0 && bytes.size() > 8; --changes) {
    const std::size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1u << below(8)));
        break;
      case 1: {
        const std::uint32_t value = special[below(special.size())];
        std::memcpy(bytes.data() + std::min(2 + 4 * below(6), bytes.size() - 4), &value, sizeof value);
        break;
      }
      case 2:
        bytes.resize(std::max<std::size_t>(at, 2));
        break;
      case 3:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      default: {
        const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(at / 2),
                          bytes.begin() + static_cast<std::ptrdiff_t>(at));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
      }
    }
  }
  return bytes;
}

}  // namespace
}  // namespace tacc

int main(int argc, char** argv) {
  const int mutations = argc > 1 ? std::atoi(argv[1]) : 2000;
  std::mt19937 random(argc > 2 ? static_cast<std::uint32_t>(std::atol(argv[2])) : 1);
  const std::vector<tacc::Bytes> corpus = tacc::makeCorpus();
  for (const tacc::Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  for (int i = 0; i < mutations; ++i) {
    const tacc::Bytes bytes = tacc::mutate(corpus[static_cast<std::size_t>(i) % corpus.size()], random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu conversations and %d mutations: no crash\n", corpus.size(), mutations);
  return 0;
}

#endif
