// A process that keeps a center and sends any bytes to a worker: its exchanges, readings and writings end, well or with
// an Error, and what the sink gets is inside the weights.
//
// Input: steps. 0: raw bytes (how many, they); 1: a reply (operation, piece, elements, numbers); 2: a failure of an
// operation; 3: a message of any kind. Then the worker does what is left of the input, an operation for each byte.
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "easgd/remote_center.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr std::size_t count = pieceElements + 5;
constexpr int mostSteps = 64;

class Keeper {
 public:
  explicit Keeper(FileDescriptor socket) : channel_(std::move(socket)) { channel_.trust(); }

  void play(Input& input) {
    for (int left = input.below(mostSteps); left > 0 && !input.isOver(); --left) step(input, input.below(4));
    (void)channel_.flush();
    // The worker reads to the end of it and does not wait for more.
    (void)::shutdown(channel_.fd(), SHUT_WR);
  }

 private:
  void step(Input& input, int which) {
    const auto raw = [&] {
      const auto some = input.bytes(input.byte());
      std::vector<std::byte> bytes(some.size());
      std::ranges::transform(some, bytes.begin(), [](std::uint8_t byte) { return std::byte{byte}; });
      return bytes;
    };
    if (which == 0) {
      const auto bytes = raw();
      (void)!::send(channel_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (which == 1) {
      CenterReply reply{};
      reply.operation = input.byte() % 8U;
      const int place = input.below(4);
      reply.first = place < 3 ? static_cast<std::uint64_t>(place) * pieceElements : input.value<std::uint64_t>();
      reply.elements = reply.first < count && input.below(4) != 0
                           ? static_cast<std::uint32_t>(elementsAt(count, reply.first))
                           : input.byte();
      const std::size_t numbers = input.below(4) != 0 ? reply.elements : 0;
      std::vector<std::byte> payload(sizeof reply + numbers * sizeof(float));
      std::memcpy(payload.data(), &reply, sizeof reply);
      send(MessageKind::centerReply, std::move(payload));
    } else if (which == 2) {
      const auto result = static_cast<taccResult_t>(input.byte() % (taccNumResults + 2));
      send(MessageKind::centerFailure, *describeCenterFailure(input.byte() % 8U, Error(result, input.text(8))));
    } else {
      send(static_cast<MessageKind>(input.below(40)), raw());
    }
  }

  void send(MessageKind kind, std::vector<std::byte> payload) {
    channel_.queue(kind, makePayload(std::move(payload)));
    (void)channel_.flush();
  }

  Channel channel_;
};

void operate(Center& center, int which, std::vector<float>& numbers) {
  try {
    if (which % 4 == 0) {
      center.exchange(numbers.data(), 0.5f, [&](std::size_t first, std::size_t n, const float* difference) {
        require(first < count && n <= count - first, "a difference of what is not there");
        for (std::size_t i = 0; i < n; ++i) numbers[first + i] -= difference[i];
      });
    } else if (which % 4 == 1) {
      center.read(numbers.data());
    } else if (which % 4 == 2) {
      center.write(numbers.data());
    } else {
      (void)center.counts();
    }
  } catch (const Error& error) {
    require(*error.what() != '\0', "an Error without a word");
  }
}

void run(Input input) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "no socket pair");
  CenterEntry entry{{Channel(FileDescriptor(ends[1])), introduceSelf(1, 0)}, {count, 1, 1, 0, 0}, FileDescriptor()};
  entry.link.channel.trust();
  RemoteCenter center(std::move(entry), 0.001);
  Keeper keeper((FileDescriptor(ends[0])));
  keeper.play(input);
  std::vector<float> numbers(count, 1.0f);
  for (int left = 8; left > 0 && !input.isOver(); --left) operate(center, input.byte(), numbers);
}

}  // namespace

std::vector<Bytes> seeds() {
  const auto reply = [](Output& output, int operation, int piece, int numbers) {
    output.byte(1).byte(operation).byte(piece).byte(1).byte(numbers);
  };
  Output good;
  good.byte(4);
  reply(good, 1, 0, 1);
  reply(good, 1, 1, 1);
  reply(good, 2, 0, 1);
  reply(good, 2, 1, 1);
  good.byte(0).byte(1).byte(3);
  Output written;
  written.byte(2);
  reply(written, 1, 0, 0);
  reply(written, 1, 1, 0);
  written.byte(2).byte(0);
  Output failed;
  failed.byte(3);
  reply(failed, 1, 0, 1);
  failed.byte(2).byte(8).byte(1).range(Bytes(8, 'x'));
  reply(failed, 2, 0, 1);
  failed.byte(0).byte(1);
  Output raw;
  raw.byte(2).byte(0).byte(24).range(Bytes(24, 0x0f)).byte(3).byte(4).range(Bytes(4, 1)).byte(8).byte(0);
  return {good.take(), written.take(), failed.take(), raw.take()};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tacc::fuzz::run({data, size});
  return 0;
}
