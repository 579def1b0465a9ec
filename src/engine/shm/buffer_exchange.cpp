#include "engine/shm/buffer_exchange.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "core/uncancelled.hpp"

namespace tacc {

/// What the call line holds of a large call. Plain numbers: any bytes are a value of each.
struct BufferExchange::Descriptor {
  Reference send, receive;
  std::uint8_t sendAccess, receiveAccess;  // Access
  std::uint8_t inPlace;                    // not 0: it is
  float seconds;                           // of this rank's last call
  std::uint8_t fresh;                      // not 0: some segment of mine is not mapped by the others yet
  std::uint8_t isAhead;                    // not 0: this rank goes on before it has seen the others
  std::uint8_t pipes;                      // PagePipes::State
};
static_assert(std::is_trivially_copyable_v<BufferExchange::Reference>);

BufferExchange::BufferExchange(int rank, int ranks, CallExchange& exchange, Waiter& waiter, HandRound* handRound,
                               MemoryAccess access)
    : rank_(rank),
      ranks_(ranks),
      exchange_(exchange),
      waiter_(waiter),
      handRound_(handRound),
      access_(access),
      mapped_(ranks) {}

bool BufferExchange::refer(const void* pointer, std::size_t bytes, Reference& reference) const {
  if (access_.sameProcess) {
    reference = {0, reinterpret_cast<std::uint64_t>(pointer)};
    return true;
  }
  const auto segment = findLibrarySegment(pointer, bytes);
  if (!segment || !announced_.contains(segment->id)) return false;
  reference = {segment->id, static_cast<std::uint64_t>(static_cast<const std::byte*>(pointer) - segment->base)};
  return true;
}

std::byte* BufferExchange::resolve(int rank, const Reference& reference, std::size_t bytes) const {
  if (access_.sameProcess) return reinterpret_cast<std::byte*>(reference.offset);
  if (bytes == 0) return nullptr;
  std::byte* data = mapped_.find(rank, reference.segment, reference.offset, bytes);
  if (data == nullptr)
    fail(taccInternalError, "rank {} refers to {} bytes of a library segment that rank {} has not mapped there",
         waiter_.nameOf(rank), bytes, waiter_.nameOf(rank_));
  return data;
}

void BufferExchange::describe(const void* pointer, std::size_t bytes, const std::optional<LibrarySegment>& segment,
                              Reference& reference, std::uint8_t& access, bool& fresh) const {
  reference = {0, reinterpret_cast<std::uint64_t>(pointer)};
  if (access_.sameProcess || pointer == nullptr || bytes == 0) {
    access = static_cast<std::uint8_t>(Access::mapped);
    return;
  }
  if (!segment) {
    access = static_cast<std::uint8_t>(access_.kernelReads ? Access::cma : Access::staged);
    return;
  }
  reference = {segment->id, static_cast<std::uint64_t>(static_cast<const std::byte*>(pointer) - segment->base)};
  access = static_cast<std::uint8_t>(Access::mapped);
  fresh = fresh || !announced_.contains(segment->id);
}

void BufferExchange::findSegments(const UserBuffers& mine) {
  input_.reset();
  output_.reset();
  finish();
  if (access_.sameProcess) return;
  const auto find = [](const std::byte* memory, std::size_t bytes) {
    return memory == nullptr || bytes == 0 ? std::nullopt : findLibrarySegment(memory, bytes);
  };
  for (bool again = true;; again = false) {
    if (mine.receive != nullptr) use_.begin(mine.receive, mine.receiveBytes);
    input_ = find(mine.send, mine.sendBytes);
    output_ = find(mine.receive, mine.receiveBytes);
    if (output_ && (input_ || !again)) break;
    use_.end();  // a fence that waits for this call would make it wait
    if (!again) return;
    const bool hasInput = !input_ && uniteLibraryMemory(mine.send, mine.sendBytes);
    const bool hasOutput = !output_ && uniteLibraryMemory(mine.receive, mine.receiveBytes);
    if (!hasInput && !hasOutput && !output_) return;
  }
  exposed_ = mine.receive;
  exposedBytes_ = mine.receiveBytes;
}

std::string BufferExchange::fence() {
  use_.end();  // so that two calls that fail do not wait for each other
  std::byte* const exposed = std::exchange(exposed_, nullptr);
  return exposed == nullptr ? std::string() : fenceLibraryMemory(exposed, exposedBytes_);
}

BufferExchange::Agreed BufferExchange::run(const UserBuffers& mine,
                                           const std::function<UserBuffers(int rank)>& buffersOf, float seconds,
                                           CallBuffers& buffers, const Ahead& ahead, const Pipes& pipes) {
  static_assert(sizeof(Descriptor) <= linePayload);
  Descriptor own{};
  findSegments(mine);
  bool isFresh = false;
  describe(mine.send, mine.sendBytes, input_, own.send, own.sendAccess, isFresh);
  describe(mine.receive, mine.receiveBytes, output_, own.receive, own.receiveAccess, isFresh);
  own.fresh = isFresh ? 1 : 0;
  own.inPlace = mine.inPlace ? 1 : 0;
  own.seconds = seconds;
  const auto isRead = [](std::uint8_t access) { return access == static_cast<std::uint8_t>(Access::cma); };
  const bool isPrivate = isRead(own.sendAccess) || isRead(own.receiveAccess);
  if (pipes.own != nullptr && isPrivate && pipes.areChecked) pipes.own->check();
  own.pipes =
      static_cast<std::uint8_t>(pipes.own != nullptr && isPrivate ? pipes.own->state() : PagePipes::State::none);
  own.isAhead = ahead.isWanted && !input_ && !output_ ? 1 : 0;
  std::memcpy(exchange_.payload(sizeof own), &own, sizeof own);
  exchange_.post();
  buffers.send = mine.send;
  buffers.receive = mine.receive;
  buffers.sendBytes = mine.sendBytes;
  buffers.receiveBytes = mine.receiveBytes;
  const auto descriptorOf = [&](int rank) {
    Descriptor d;
    std::memcpy(&d, exchange_.payloadOf(rank, sizeof d), sizeof d);
    return d;
  };
  if (ahead.rank >= 0) {
    if (ahead.rank != rank_) exchange_.await(ahead.rank);
    const Descriptor first = descriptorOf(ahead.rank);
    if (first.isAhead != 0) return {{Access::staged, Access::staged, first.inPlace != 0}, seconds, true};
  }
  exchange_.awaitAll();

  Agreed agreed{{Access::mapped, Access::mapped, false}, seconds};
  LoweringFacts& facts = agreed.facts;
  givers_.assign(static_cast<std::size_t>(ranks_), false);
  bool anyFresh = false, anyLibrary = false;
  auto allPipes = PagePipes::State::open;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Descriptor d = descriptorOf(rank);
    facts.input = std::min(facts.input, static_cast<Access>(d.sendAccess));
    facts.output = std::min(facts.output, static_cast<Access>(d.receiveAccess));
    facts.inPlace = facts.inPlace || d.inPlace != 0;
    agreed.slowest = std::max(agreed.slowest, d.seconds);
    allPipes = std::min(allPipes, static_cast<PagePipes::State>(d.pipes));
    givers_[static_cast<std::size_t>(rank)] = d.fresh != 0;
    anyFresh = anyFresh || d.fresh != 0;
    anyLibrary = anyLibrary || d.send.segment != 0 || d.receive.segment != 0;
  }
  if (anyFresh) shareFresh();
  // Lines name library memory by its segment, so where it is mixed with private memory nobody knows the peer's address.
  for (Access* access : {&facts.input, &facts.output})
    if (*access == Access::cma && anyLibrary) *access = Access::staged;

  if (pipes.own != nullptr && (facts.input == Access::cma || facts.output == Access::cma)) {
    agreed.hasPipes = allPipes == PagePipes::State::open;
    pipes.own->advance(allPipes);
  }

  buffers.remoteSend.resize(static_cast<std::size_t>(ranks_));
  buffers.remoteReceive.resize(static_cast<std::size_t>(ranks_));
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    const Descriptor d = descriptorOf(rank);
    const auto index = static_cast<std::size_t>(rank);
    const UserBuffers theirs = buffersOf(rank);
    if (facts.input == Access::mapped) buffers.remoteSend[index] = resolve(rank, d.send, theirs.sendBytes);
    if (facts.output == Access::mapped) buffers.remoteReceive[index] = resolve(rank, d.receive, theirs.receiveBytes);
    if (facts.input == Access::cma) buffers.remoteSend[index] = reinterpret_cast<const std::byte*>(d.send.offset);
    if (facts.output == Access::cma) buffers.remoteReceive[index] = reinterpret_cast<std::byte*>(d.receive.offset);
  }
  return agreed;
}

void BufferExchange::shareFresh() {
  const Uncancelled whole;  // descriptors are handed on and closed
  std::vector<OfferedMemory> offered;
  // Those that the line names: what is found now may be others.
  for (const auto& segment : {input_, output_})
    if (segment && announced_.insert(segment->id).second) offered.push_back({segment->id, segment->fd, segment->bytes});
  // Before the new ones come: of this call's own segments one may be freed already, by a rank that finished early.
  mapped_.dropFreed();
  const auto start = std::chrono::steady_clock::now();
  const auto look = [&](int missing, const std::function<bool()>& hasCome) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    waiter_.lookAt(missing, waited.count(), hasCome);
  };
  for (ReceivedMemory& received : handRound_->run(offered, givers_, look))
    mapped_.add(received.rank, received.id, std::move(received.fd), received.bytes);
}

}  // namespace tacc
