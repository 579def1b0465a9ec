// A worker that knows the secret and sends any bytes to the process that keeps the center: it gets replies, a refusal,
// or the end of its connection, and only whole pieces of the center move.
//
// Input: over TCP or not, then steps. 0: raw bytes (how many, they); 1: asks for a seat (how, the count); 2: a request
// (action, piece, elements, numbers); 3: a message of any kind; 4: the session goes on; 5: replies are read.
#include "easgd/center_session.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr int steps = 6;
constexpr std::size_t count = 2 * pieceElements + 5;
constexpr std::uint32_t library = TACC_VERSION_CODE;

CenterMemory& memory() {
  static CenterMemory one = CenterMemory::create({count, 1}, nullptr);
  return one;
}

class Worker {
 public:
  explicit Worker(Input input) : input_(input) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "no socket pair");
    channel_ = Channel(FileDescriptor(ends[0]));
    channel_.trust();
    Introduction who = introduceSelf(1, 0);
    const int kind = input_.below(8);
    if (kind == 6) who.libraryVersion = library + 1;
    if (kind == 7) who.encrypts = 1;
    Guest guest{Channel(FileDescriptor(ends[1])), kind % 2 == 1, who};
    guest.channel.trust();
    session_.emplace(std::move(guest), memory(), introduceSelf(1, 0), 1, 0.001);
  }

  void play() {
    while (!input_.isOver() && !session_->isOver()) step(input_.below(steps));
    session_->progress(POLLIN | POLLOUT);
    session_->progress(POLLIN | POLLOUT | POLLHUP);
    require(session_->isOver(), "a session goes on behind the end of its connection");
  }

 private:
  void step(int which) {
    switch (which) {
      case 0: {
        const auto some = input_.bytes(input_.byte());
        (void)!::send(channel_.fd(), some.data(), some.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
      }
      case 1: {
        CenterJoin join{count, centerProtocol, input_.below(2) == 0 ? 0U : 1U};
        if (input_.below(4) == 3) join.count = input_.value<std::uint64_t>();
        if (input_.below(8) == 7) join.protocol = input_.byte();
        send(MessageKind::centerJoin, *payloadOf(join));
        break;
      }
      case 2:
        ask();
        break;
      case 3: {
        const auto some = input_.bytes(input_.byte());
        std::vector<std::byte> payload(some.size());
        std::ranges::transform(some, payload.begin(), [](std::uint8_t byte) { return std::byte{byte}; });
        send(static_cast<MessageKind>(input_.below(40)), std::move(payload));
        break;
      }
      case 4:
        session_->progress(POLLIN | POLLOUT);
        break;
      default:
        hear();
    }
  }

  void ask() {
    CenterRequest request{};
    request.action = static_cast<CenterAction>(input_.below(6));
    const int place = input_.below(5);
    request.first = place < 4 ? static_cast<std::uint64_t>(place) * pieceElements : input_.value<std::uint64_t>();
    const bool isRight = input_.below(4) != 0;
    request.elements = isRight && request.first < count ? static_cast<std::uint32_t>(elementsAt(count, request.first))
                                                        : input_.value<std::uint32_t>();
    request.operation = input_.byte() % 4U;
    request.isLast = input_.byte() % 2U;
    request.alpha = input_.below(4) == 0 ? input_.value<float>() : 0.5f;
    const bool carries = request.action == CenterAction::move || request.action == CenterAction::write;
    std::size_t numbers = carries && isRight ? std::min<std::size_t>(request.elements, pieceElements) : 0;
    if (input_.below(8) == 7) numbers = input_.byte();
    std::vector<std::byte> payload(sizeof request + numbers * sizeof(float));
    std::memcpy(payload.data(), &request, sizeof request);
    send(MessageKind::centerRequest, std::move(payload));
  }

  void send(MessageKind kind, std::vector<std::byte> payload) {
    if (channel_.hasOutput()) return;
    channel_.queue(kind, makePayload(std::move(payload)));
    (void)channel_.flush();
  }

  void hear() {
    (void)channel_.flush();
    (void)channel_.receive();
    while (const auto message = channel_.take()) {
      if (message->kind == MessageKind::centerSeat) {
        const auto seat = valueIn<CenterSeat>(*message);
        require(seat && seat->count == count && message->descriptors.size() == seat->hasMemory, "a seat that is none");
      } else if (message->kind == MessageKind::centerReply) {
        const auto reply = headIn<CenterReply>(*message);
        require(reply && message->payload.size() <= longestCenterMessage, "a reply that is none");
        require(reply->elements <= pieceElements && reply->first < count, "a reply about what is not there");
      } else {
        require(message->kind == MessageKind::failure || message->kind == MessageKind::centerFailure,
                "a message that centers do not send");
      }
    }
  }

  Input input_;
  Channel channel_{FileDescriptor()};
  std::optional<CenterSession> session_;
};

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> corpus;
  const auto join = [](Output& output, int wantsMemory) { output.byte(1).byte(wantsMemory).byte(0).byte(0).byte(4); };
  const auto request = [](Output& output, CenterAction action, int piece) {
    output.byte(2).byte(static_cast<int>(action)).byte(piece).byte(1).byte(1).byte(1).byte(1).byte(0).byte(4).byte(5);
  };
  Output served;
  served.byte(1);
  join(served, 1);
  for (const CenterAction action : {CenterAction::write, CenterAction::move, CenterAction::read})
    for (int piece = 0; piece < 3; ++piece) request(served, action, piece);
  request(served, CenterAction::count, 0);
  corpus.push_back(served.take());
  Output mapped;
  mapped.byte(0);
  join(mapped, 1);
  mapped.byte(5);
  request(mapped, CenterAction::read, 0);
  corpus.push_back(mapped.take());
  for (const int kind : {6, 7}) {
    Output refused;
    refused.byte(kind);
    join(refused, 0);
    refused.byte(4).byte(5);
    corpus.push_back(refused.take());
  }
  Output raw;
  raw.byte(1).byte(0).byte(24).range(Bytes(24, 0x7a)).byte(4).byte(3).byte(3).byte(1).byte(2).byte(3).byte(24).byte(4);
  corpus.push_back(raw.take());
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = tacc::fuzz::memory().workers();
  tacc::fuzz::Worker({data, size}).play();
  tacc::fuzz::require(tacc::fuzz::memory().workers() == before, "a worker that has gone is still counted");
  return 0;
}
