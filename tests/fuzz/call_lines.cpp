// Ranks of the node that lie in shared memory: whatever stands in their lines, notes, pairs and on the error board,
// this rank reads and writes only what is its own or was given to it.
//
// Input: steps. 0: a call (its kind, how large), and what the others' lines say of it; 1: a point-to-point call, and
// what the other's messages say; 2: bytes anywhere in the others' areas; 3: something on the error board.
#include <sys/mman.h>

#include <array>
#include <optional>
#include <span>
#include <thread>

#include "engine/call_shape.hpp"
#include "engine/point_to_point.hpp"
#include "engine/shm/buffer_exchange.hpp"
#include "engine/shm/call_exchange.hpp"
#include "engine/signature.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr int ranks = 3, self = 0, liar = 1, steps = 4, mostSteps = 8;
constexpr NodeGeometry geometry{ranks, 4096, 16384, 65536};
constexpr std::size_t givenBytes = 64 << 10;  // of library memory, by the liar

/// As the line of a large call holds it.
struct Descriptor {
  BufferExchange::Reference send, receive;
  std::uint8_t sendAccess, receiveAccess, inPlace;
  float seconds;
  std::uint8_t fresh, isAhead;
};

/// Shared memory with nothing behind it.
std::byte* mapSegment() {
  const std::size_t bytes = NodeSegment::bytesFor(geometry);
  void* whole = ::mmap(nullptr, bytes + pageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(whole != MAP_FAILED && ::mprotect(whole, bytes, PROT_READ | PROT_WRITE) == 0, "no memory");
  return static_cast<std::byte*>(whole);
}

/// This rank's part of the engine, and library memory that the liar has given to it.
class Node {
 public:
  static Node& get() {
    static Node node;
    return node;
  }

  void run(Input input) {
    segment_.errorBoard().state = 0;
    for (int step = 0; step < mostSteps && !input.isOver(); ++step) {
      try {
        take(input);
      } catch (const Error& error) {
        require(*error.what() != '\0', "an Error without a word");
      }
    }
  }

 private:
  Node() {
    waiter_.setIdleWork([this] {
      if (isImpatient_) fail(taccTimeout, "nobody came");
    });
    void* memory = allocateLibraryMemory(givenBytes);
    const auto segment = *findLibrarySegment(memory, givenBytes);
    given_ = segment.id;
    const auto give = [&](int rank) {
      HandRound round(key_, ranks, rank);
      const std::array offered{OfferedMemory{segment.id, segment.fd, segment.bytes}};
      const std::size_t count = rank == liar ? 1 : 0;
      (void)round.run(std::span(offered).first(count), {false, true, false}, [](int, const auto&) {});
    };
    std::thread other([&] { give(liar); });
    std::thread third([&] { give(2); });
    buffers_.emplace(self, ranks, exchange_, waiter_, &own_, MemoryAccess{});
    pairs_.emplace(segment_, self, waiter_, *buffers_);
    // A call in which the liar's memory is new.
    Descriptor honest{};
    honest.sendAccess = honest.receiveAccess = static_cast<std::uint8_t>(Access::mapped);
    const std::uint64_t signature = makeSignature(Collective::allReduce, taccInt8, taccSum, 0, 0);
    exchange_.begin(signature, linePayload);
    for (int rank = 1; rank < ranks; ++rank) {
      honest.fresh = rank == liar ? 1 : 0;
      postLine(rank, signature, honest, true);
    }
    CallBuffers found;
    (void)buffers_->run({}, [](int) { return UserBuffers{}; }, 0, found, {}, {});
    other.join();
    third.join();
    base_ = buffers_->resolve(liar, {given_, libraryHeaderBytes}, 1);
    require(base_ != nullptr, "the liar's memory was not mapped");
    isImpatient_ = true;
  }

  void take(Input& input) {
    switch (input.below(steps)) {
      case 0:
        return call(input);
      case 1:
        return exchange(input);
      case 2: {
        std::byte* area = begin_ + NodeSegment::areaOffset(geometry, liar);
        const std::size_t length =
            NodeSegment::areaOffset(geometry, liar + 1) - NodeSegment::areaOffset(geometry, liar);
        const std::size_t offset = input.value<std::uint32_t>() % length;
        const auto bytes = input.bytes(input.byte());
        const std::size_t count = std::min(bytes.size(), length - offset);
        if (count > 0) std::memcpy(area + offset, bytes.data(), count);
        return;
      }
      default: {
        ErrorBoard& board = segment_.errorBoard();
        board.rank = input.value<std::int8_t>();
        board.result = input.value<std::int8_t>();
        std::memset(board.message, input.byte(), sizeof board.message);
        board.state = 2;
        waiter_.checkErrors();
      }
    }
  }

  void call(Input& input) {
    Call made{.collective = static_cast<Collective>(input.below(static_cast<int>(Collective::barrier) + 1)),
              .send = mine_.data(),
              .receive = mine_.data(),
              .count = std::size_t{1} + input.value<std::uint16_t>() / ranks,
              .type = taccInt8,
              .op = taccSum,
              .root = input.below(ranks)};
    const std::uint64_t signature = makeSignature(made.collective, made.type, made.op, made.root, made.count);
    const bool isLarge = input.below(2) == 0, isOneWay = input.below(4) == 0;
    exchange_.begin(signature, isLarge ? linePayload : notePayload, isOneWay && !isLarge);
    for (int rank = 1; rank < ranks; ++rank) {
      auto lie = input.value<Descriptor>();
      if (input.below(2) == 0) lie.send.segment = given_;
      if (input.below(2) == 0) lie.receive.segment = given_;
      if (input.below(4) != 0) lie.sendAccess = lie.receiveAccess = static_cast<std::uint8_t>(Access::mapped);
      if (input.below(16) != 0) lie.fresh = 0;
      const std::uint64_t said = input.below(8) == 0 ? input.value<std::uint64_t>() : signature;
      postLine(rank, said, lie, input.below(16) != 0);
    }
    if (!isLarge) {
      exchange_.post();
      exchange_.await(made.root == self ? liar : made.root);
      return exchange_.awaitAll();
    }
    const auto buffersOf = [&](int rank) { return usedBuffers(made, rank, ranks); };
    CallBuffers found;
    const int ahead = input.below(2) == 0 ? liar : -1;  // who may say that it does not wait for the others
    const auto agreed = buffers_->run(buffersOf(self), buffersOf, 0, found, {.rank = ahead}, {});
    for (int rank = 1; rank < ranks; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      if (agreed.facts.input == Access::mapped) check(rank, found.remoteSend[index], buffersOf(rank).sendBytes);
      if (agreed.facts.output == Access::mapped) check(rank, found.remoteReceive[index], buffersOf(rank).receiveBytes);
    }
  }

  void check(int rank, const std::byte* address, std::size_t bytes) const {
    if (bytes == 0) return;
    const bool isGiven =
        rank == liar && address >= base_ && bytes <= givenBytes && address <= base_ + givenBytes - bytes;
    require(isGiven, "an address that nobody has given");
  }

  void exchange(Input& input) {
    const bool isSend = input.below(4) == 0;
    const std::size_t count = std::size_t{1} + input.value<std::uint16_t>() / ranks;
    const PointToPoint operation{isSend, liar, mine_.data(), count, taccInt8};
    PairSend& theirs = segment_.pairSend(liar, self);
    const std::uint32_t taken = segment_.pairReceive(self, liar).taken.load();
    for (PairMessage& message : theirs.messages) {
      message = input.value<PairMessage>();
      if (input.below(2) == 0) message.segment = given_;
      if (input.below(4) != 0)
        message.operation = static_cast<std::uint64_t>(operation.count) << 8 |
                            static_cast<std::uint64_t>(operation.type) << 1 | (message.operation & 1);
      if (input.below(2) == 0) message.bytes = operation.count;
    }
    theirs.posted = taken + input.value<std::uint8_t>();
    segment_.pairReceive(liar, self).taken = segment_.pairSend(self, liar).posted.load() + input.value<std::uint8_t>();
    pairs_->run(std::span(&operation, 1));
  }

  void postLine(int rank, std::uint64_t signature, const Descriptor& descriptor, bool isTrue) {
    const std::uint32_t sequence = exchange_.sequence();
    CallLine& line = segment_.callLine(rank, sequence);
    const CallLine& mine = segment_.callLine(self, sequence);
    line.signature = signature;
    line.history = isTrue ? mine.history.load() : ~mine.history.load();
    std::memcpy(line.payload, &descriptor, sizeof descriptor);
    line.sequence = sequence;
    CallNote& note = segment_.callNote(rank, sequence);
    note.history = line.history.load();
    note.sequence = sequence;
  }

  std::byte* begin_ = mapSegment();
  NodeSegment segment_{begin_, geometry};
  bool isImpatient_ = false;
  std::uint64_t given_ = 0;
  std::byte* base_ = nullptr;
  Key key_{1, 2, 3};
  HandRound own_{key_, ranks, self};
  Waiter waiter_{segment_, self, {1, 2, 3}, nullptr, {0, 0, false}, 1, [] { return std::string("a call"); }};
  CallExchange exchange_{segment_, self, waiter_};
  std::optional<BufferExchange> buffers_;
  std::optional<PointToPointEngine> pairs_;
  std::vector<std::byte> mine_{std::vector<std::byte>(1 << 17)};
};

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> corpus;
  for (const std::uint64_t offset : {std::uint64_t{libraryHeaderBytes}, std::uint64_t{0}, std::uint64_t{1} << 40}) {
    Descriptor lie{{1, offset}, {1, offset}, 2, 2, 0, 1, 0, 0};
    Output output;
    for (int collective = 0; collective <= static_cast<int>(Collective::barrier); ++collective) {
      output.byte(0).byte(collective).value(std::uint16_t{3000}).byte(0).byte(0).byte(1);
      for (int rank = 1; rank < ranks; ++rank) output.value(lie).byte(0).byte(0).byte(1).byte(1).byte(1).byte(1);
    }
    corpus.push_back(output.take());
    for (const std::uint64_t direct : {0, 1}) {
      Output pair;
      pair.byte(1).byte(1).value(std::uint16_t{3000});
      for (int i = 0; i < pairWindow; ++i)
        pair.value(PairMessage{0, offset, 1001, direct}).byte(direct == 1 ? 0 : 1).byte(1).byte(0);
      pair.byte(4).byte(0).byte(1).byte(0).value(std::uint16_t{30}).range(Bytes(160, 0)).byte(1).byte(1);
      corpus.push_back(pair.take());
    }
  }
  corpus.push_back(Output().byte(3).byte(1).byte(5).byte('x').byte(3).byte(99).byte(99).byte('y').take());
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tacc::fuzz::Node::get().run({data, size});
  return 0;
}
