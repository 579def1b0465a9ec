#include "engine/net/network_pairs.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/types.hpp"
#include "engine/signature.hpp"

namespace tacc {

void NetworkPairs::start(std::span<const PointToPoint> operations) {
  operations_.clear();
  NetworkTransport& transport = peers_.transport();
  // Long messages go in pieces, so that a rank that waits sees them get on.
  const std::size_t pieceBytes = transport.pieceBytes();
  for (const PointToPoint& what : operations) {
    Operation& o = operations_.emplace_back();
    o.what = what;
    o.bytes = what.count * sizeOf(what.type);
    const bool isInline = o.bytes <= inlineBytes;
    const auto pieces = isInline ? 0U : static_cast<std::uint32_t>((o.bytes + pieceBytes - 1) / pieceBytes);
    o.data.resize(pieces);
    o.header = CallHeader::of(makeSignature(Collective::barrier, what.type, 0, 0, what.count), 0);
    o.inlined = isInline ? o.bytes : 0;
    if (what.isSend) {
      o.envelope.resize(sizeof o.header + o.inlined);
      std::memcpy(o.envelope.data(), &o.header, sizeof o.header);
      if (o.inlined > 0) std::memcpy(o.envelope.data() + sizeof o.header, what.buffer, o.inlined);
      const std::uint32_t tag = peers_.takeSendTags(what.peer, 1 + pieces, MessageClass::pair);
      transport.send(what.peer, tag, o.envelope.data(), o.envelope.size(), o.opening);
      startPieces(o, tag + 1);
      o.isOpened = true;
    } else {
      o.envelope.resize(sizeof(CallHeader) + inlineBytes);
      const std::uint32_t tag = peers_.takeReceiveTags(what.peer, 1 + pieces, MessageClass::pair);
      transport.receive(what.peer, tag, o.envelope.data(), o.envelope.size(), o.opening);
      startPieces(o, tag + 1);
    }
  }
}

void NetworkPairs::startPieces(Operation& o, std::uint32_t tag) {
  auto* data = static_cast<std::byte*>(o.what.buffer);
  const std::size_t pieceBytes = peers_.transport().pieceBytes();
  for (std::size_t i = 0; i < o.data.size(); ++i) {
    const std::size_t begin = i * pieceBytes, bytes = std::min(pieceBytes, o.bytes - begin);
    const auto number = tag + static_cast<std::uint32_t>(i);
    if (o.what.isSend)
      peers_.transport().send(o.what.peer, number, data + begin, bytes, o.data[i]);
    else
      peers_.transport().receive(o.what.peer, number, data + begin, bytes, o.data[i]);
  }
}

bool NetworkPairs::advance() {
  bool moved = false;
  for (Operation& o : operations_) {
    if (!o.isOpened && o.opening.done) moved |= openReceive(o);
    for (; o.arrived < o.data.size() && o.data[o.arrived].done; ++o.arrived) moved = true;
  }
  return moved;
}

bool NetworkPairs::openReceive(Operation& o) {
  CallHeader theirs{};
  std::memcpy(&theirs, o.envelope.data(), sizeof theirs);
  if (theirs != o.header || o.opening.bytes != sizeof theirs + o.inlined) failMismatch(o, theirs);
  if (o.inlined > 0) std::memcpy(o.what.buffer, o.envelope.data() + sizeof theirs, o.inlined);
  o.isOpened = true;
  return true;
}

void NetworkPairs::failMismatch(const Operation& o, const CallHeader& theirs) const {
  fail(taccInvalidUsage, "rank {} receives {} {} from rank {}, which sends {} {}", rank_, o.what.count,
       nameOf(o.what.type), o.what.peer, countIn(theirs.signature()), nameOf(typeIn(theirs.signature())));
}

bool NetworkPairs::isFinished() const { return std::ranges::all_of(operations_, &Operation::isDone); }

std::vector<int> NetworkPairs::awaited() const {
  std::vector<int> ranks;
  for (const Operation& o : operations_)
    if (!o.isDone() && std::ranges::find(ranks, o.what.peer) == ranks.end()) ranks.push_back(o.what.peer);
  return ranks;
}

std::string NetworkPairs::describe() const {
  for (const Operation& o : operations_)
    if (!o.isDone())
      return fmt::format("{} of {} {} {} rank {}", o.what.isSend ? "send" : "receive", o.what.count,
                         nameOf(o.what.type), o.what.isSend ? "to" : "from", o.what.peer);
  return "no operation";
}

}  // namespace tacc
