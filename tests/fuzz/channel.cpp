// Whatever bytes come over a connection: the parser of messages neither crashes, nor hangs, nor makes up bytes.
//
// Input: the size of the pieces in which the rest comes, after how many messages the other end is trusted, the rest.
#include "comm/bootstrap/channel.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>

#include "comm/bootstrap/completion.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/control/failure.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr std::size_t strangerLimit = 256;
constexpr std::size_t mostPieces = 100;
constexpr std::uint64_t longestPayload = 1 << 16;  // for more, more memory is kept ready: the time would go there

std::array<FileDescriptor, 2> makePair() {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "no socket pair");
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
  if (message.kind != MessageKind::complete) return;
  try {
    const Completion completion = completionIn(message);
    require(completion.route.size() * sizeof(int) <= message.payload.size(), "a route out of nothing");
    require(*payloadOf(completion) == *payloadOf(completionIn({{}, *payloadOf(completion), {}})), "not the same again");
  } catch (const Error&) {
    // It is none.
  }
}

void feed(Input input) {
  const std::size_t chosen = std::size_t{1} + input.byte();
  const std::size_t strangers = input.byte() % 4U;
  const std::string data = input.restAsText();
  const std::size_t piece = std::max(chosen, data.size() / mostPieces);
  std::array<FileDescriptor, 2> ends = makePair();
  Channel channel(std::move(ends[1]));
  channel.limitPayload(longestPayload);
  std::size_t messages = 0;
  std::size_t taken = 0;
  bool open = true;
  if (strangers == 0) channel.trust();
  for (std::size_t sent = 0; sent < data.size() && open;) {
    const ssize_t count =
        ::send(ends[0].get(), data.data() + sent, std::min(piece, data.size() - sent), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<std::size_t>(count);
    // A stranger gets one message read at a time: what follows it stays in the socket until it is taken.
    for (std::size_t before = messages + 1; before != messages && open;) {
      before = messages;
      open = channel.receive();
      while (const auto message = channel.take()) {
        ++messages;
        taken += message->payload.size();
        require(messages > strangers || message->payload.size() <= strangerLimit, "a stranger's message is too long");
        require(message->descriptors.empty(), "descriptors out of nothing");
        use(*message);
        if (messages == strangers) channel.trust();
      }
    }
    require(taken <= sent, "more bytes were taken than came");
  }
  if (open) return;
  require(!channel.receive(), "a connection that broke opened again");
  require(!channel.whyClosed().empty(), "no reason");
}

/// The bytes of some messages, as a channel sends them.
Bytes bytesOfMessages(const std::vector<const Message*>& messages) {
  std::array<FileDescriptor, 2> ends = makePair();
  Channel channel(std::move(ends[0]));
  for (const Message* message : messages) channel.queue(message->kind, makePayload(message->payload));
  require(channel.flush() && !channel.hasOutput(), "the conversation does not fit the socket");
  Bytes bytes(1 << 18);
  const ssize_t count = ::recv(ends[1].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

template <class Value>
Message messageOf(MessageKind kind, const Value& value) {
  return {kind, *payloadOf(value), {}};
}

}  // namespace

std::vector<Bytes> seeds() {
  const Secret secret{};
  const Challenge challenge{makeNonce()};
  const Hello hello = answerChallenge(secret, challenge, introduceSelf(4, 1));
  const Message question = messageOf(MessageKind::challenge, challenge);
  const Message greeting = messageOf(MessageKind::hello, hello);
  const Message answer = messageOf(MessageKind::welcome, answerHello(secret, challenge, hello, introduceSelf(4, 0)));
  const Message failure{MessageKind::failure, *describeFailure(Error(taccTimeout, std::string(300, 'x'))), {}};
  const Message part{MessageKind::gather, std::vector<std::byte>(5000), {}};
  const Message nothing{MessageKind::gathered, {}, {}};
  const Message complete{MessageKind::complete, *payloadOf(Completion{true, {}, {3, 0}}), {}};
  std::vector<Bytes> corpus;
  const std::vector<std::vector<const Message*>> conversations = {{&greeting, &part, &part},
                                                                  {&question, &answer, &nothing, &complete},
                                                                  {&question, &failure},
                                                                  {&part},
                                                                  {&nothing, &nothing, &complete, &part, &failure}};
  for (const auto& messages : conversations)
    for (const int piece : {0, 6, 23, 255})
      corpus.push_back(
          Output().byte(piece).byte(static_cast<int>(corpus.size() % 4)).range(bytesOfMessages(messages)).take());
  corpus.emplace_back(Bytes(600, 0));
  corpus.emplace_back(Bytes(600, 0xff));
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tacc::fuzz::mayRefuse([&] { tacc::fuzz::feed({data, size}); });
}
