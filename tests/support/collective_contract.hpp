// What every collective delivers, and its call, said once for all tests: from its definition in tacc.h, and not from
// the table by which the library knows it.
#pragma once

#include <cstddef>

#include "core/collective.hpp"
#include "tacc/tacc.h"

namespace tacc::test {

/// An element of a result is made of element `index` of what the ranks from `first` on and below `behind` sent, in this
/// order.
struct Origin {
  int first, behind;
  std::size_t index;
};

/// Of one call of `count` elements, as one rank has it.
struct Contract {
  Collective collective;
  int rank, ranks, root;
  std::size_t count;

  bool sendsAll() const {
    return collective == Collective::reduceScatter || collective == Collective::allToAll ||
           collective == Collective::scatter;
  }
  bool receivesAll() const {
    return collective == Collective::allGather || collective == Collective::allToAll ||
           collective == Collective::gather;
  }
  /// Whether one of the two buffers is the root's alone, so that only it can call in place.
  bool isRootsOwn() const {
    return collective == Collective::reduce || collective == Collective::gather || collective == Collective::scatter;
  }
  bool receives() const {
    if (collective == Collective::barrier) return false;
    if (collective == Collective::exscan) return rank > 0;
    return rank == root || !(collective == Collective::reduce || collective == Collective::gather);
  }

  /// Elements that are sent, if this rank sends, and received, if it receives.
  std::size_t sent() const { return elements(sendsAll()); }
  std::size_t received() const { return elements(receivesAll()); }

  /// Elements from the begin of the one buffer of a call in place to what is sent, and to what is received.
  std::size_t placeOfSent() const { return canBeInPlace() && receivesAll() && !sendsAll() ? mine() : 0; }
  std::size_t placeOfReceived() const { return canBeInPlace() && sendsAll() && !receivesAll() ? mine() : 0; }
  bool canBeInPlace() const { return rank == root || !isRootsOwn(); }

  /// Of element `i` of what is received.
  Origin origin(std::size_t i) const {
    const int sender = count == 0 ? 0 : static_cast<int>(i / count);
    switch (collective) {
      case Collective::allReduce:
      case Collective::reduce:
        return {0, ranks, i};
      case Collective::scan:
        return {0, rank + 1, i};
      case Collective::exscan:
        return {0, rank, i};
      case Collective::reduceScatter:
        return {0, ranks, mine() + i};
      case Collective::broadcast:
        return {root, root + 1, i};
      case Collective::scatter:
        return {root, root + 1, mine() + i};
      case Collective::allToAll:
        return {sender, sender + 1, mine() + i % count};
      case Collective::allGather:
      case Collective::gather:
        return {sender, sender + 1, i % count};
      case Collective::barrier:
        break;
    }
    return {};
  }

  taccResult_t call(const void* send, void* receive, taccDataType_t type, taccRedOp_t op, taccComm_t comm) const {
    switch (collective) {
      case Collective::allReduce:
        return taccAllReduce(send, receive, count, type, op, comm, nullptr);
      case Collective::broadcast:
        return taccBroadcast(send, receive, count, type, root, comm, nullptr);
      case Collective::reduce:
        return taccReduce(send, receive, count, type, op, root, comm, nullptr);
      case Collective::allGather:
        return taccAllGather(send, receive, count, type, comm, nullptr);
      case Collective::reduceScatter:
        return taccReduceScatter(send, receive, count, type, op, comm, nullptr);
      case Collective::allToAll:
        return taccAllToAll(send, receive, count, type, comm, nullptr);
      case Collective::gather:
        return taccGather(send, receive, count, type, root, comm, nullptr);
      case Collective::scatter:
        return taccScatter(send, receive, count, type, root, comm, nullptr);
      case Collective::scan:
        return taccScan(send, receive, count, type, op, comm, nullptr);
      case Collective::exscan:
        return taccExscan(send, receive, count, type, op, comm, nullptr);
      case Collective::barrier:
        break;
    }
    return taccBarrier(comm, nullptr);
  }

 private:
  std::size_t mine() const { return static_cast<std::size_t>(rank) * count; }
  std::size_t elements(bool ofAll) const {
    return collective == Collective::barrier ? 0 : ofAll ? count * static_cast<std::size_t>(ranks) : count;
  }
};

}  // namespace tacc::test
