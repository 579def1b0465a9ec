// Collectives that move data, against PMPI, byte for byte: also with types that have gaps or an order of their own on
// one side and none on the other.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "cases.hpp"

namespace tacc::test {
namespace {

/// One item that is sent: `senders` elements of one type, which are `receivers` elements of another.
struct Pair {
  const char* name;
  MPI_Datatype send;
  int senders;
  MPI_Datatype receive;
  int receivers;
};

MPI_Datatype committed(MPI_Datatype type) {
  PMPI_Type_commit(&type);
  return type;
}

/// Made once, and never freed: they live as long as the program.
const std::vector<Pair>& pairs() {
  static const std::vector<Pair> all = [] {
    const std::array<int, 3> lengths{1, 1, 1}, backwards{2, 1, 0};
    MPI_Datatype three = MPI_DATATYPE_NULL, spread = MPI_DATATYPE_NULL, reversed = MPI_DATATYPE_NULL;
    PMPI_Type_contiguous(3, MPI_INT, &three);
    PMPI_Type_vector(3, 1, 2, MPI_INT, &spread);
    PMPI_Type_indexed(3, lengths.data(), backwards.data(), MPI_INT, &reversed);
    three = committed(three);
    spread = committed(spread);
    reversed = committed(reversed);
    return std::vector<Pair>{{"char", MPI_CHAR, 1, MPI_CHAR, 1},
                             {"byte", MPI_BYTE, 1, MPI_BYTE, 1},
                             {"short", MPI_SHORT, 1, MPI_SHORT, 1},
                             {"int", MPI_INT, 1, MPI_INT, 1},
                             {"double", MPI_DOUBLE, 1, MPI_DOUBLE, 1},
                             {"double complex", MPI_C_DOUBLE_COMPLEX, 1, MPI_C_DOUBLE_COMPLEX, 1},
                             {"double and int", MPI_DOUBLE_INT, 1, MPI_DOUBLE_INT, 1},
                             {"three ints", three, 1, MPI_INT, 3},
                             {"ints with gaps", spread, 1, MPI_INT, 3},
                             {"ints to gaps", MPI_INT, 3, spread, 1},
                             {"ints to reversed ones", MPI_INT, 3, reversed, 1},
                             {"reversed ints to gaps", reversed, 1, spread, 1}};
  }();
  return all;
}

constexpr std::size_t slack = 16;

/// Elements in one rank's memory.
struct Part {
  MPI_Datatype type;
  int count;
  std::size_t bytes(int parts) const {
    MPI_Aint low = 0, extent = 0;
    PMPI_Type_get_extent(type, &low, &extent);
    // The last element of a type with gaps ends before its extent does, others after it.
    return static_cast<std::size_t>(extent) * static_cast<std::size_t>(count) * static_cast<std::size_t>(parts) + slack;
  }
};

using Run = std::function<int(bool isReference, const void* send, void* receive)>;

/// The buffer that `run` reads is the same both times, the one that it writes has the same contents before, and all of
/// it is compared afterwards.
void compare(const std::string& what, std::size_t sendBytes, std::size_t receiveBytes, int shift, unsigned seed,
             const Run& run) {
  std::mt19937 engine(seed);
  const auto fill = [&engine](Memory& memory) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory.data()[i] = static_cast<std::byte>(engine());
  };
  Memory send(sendBytes, shift), aligned(sendBytes, 0), expected(receiveBytes, 0), found(receiveBytes, shift);
  fill(send);
  std::memcpy(aligned.data(), send.data(), sendBytes);
  fill(expected);
  std::memcpy(found.data(), expected.data(), receiveBytes);
  if (run(true, aligned.data(), expected.data()) != MPI_SUCCESS) complain("PMPI: " + what);
  if (run(false, send.data(), found.data()) != MPI_SUCCESS) complain(what);
  const auto wanted = expected.contents(), got = found.contents();
  for (std::size_t at = 0; at < wanted.size(); ++at)
    if (wanted[at] != got[at]) complain(what + ": byte " + std::to_string(at) + " differs from PMPI's");
  if (std::memcmp(send.data(), aligned.data(), sendBytes) != 0) complain(what + " has changed what it sends");
}

struct Case {
  MPI_Comm comm;
  int rank, ranks, root, shift;
  unsigned seed;
  Part send, receive;
  std::string text;
  bool isRoot() const { return rank == root; }
};

void checkBcast(const Case& c) {
  const Part& own = c.isRoot() ? c.send : c.receive;
  compare("MPI_Bcast of " + c.text, 16, own.bytes(1), c.shift, c.seed,
          [&](bool isReference, const void* /*send*/, void* buffer) {
            return (isReference ? PMPI_Bcast : MPI_Bcast)(buffer, own.count, own.type, c.root, c.comm);
          });
}

/// For the reference of a call in place, which is not in place itself: what `elements` of `rank` are before it.
class Before {
 public:
  Before(const void* buffer, const Part& part, int parts, int rank)
      : bytes_(static_cast<const std::byte*>(buffer), static_cast<const std::byte*>(buffer) + part.bytes(parts)),
        offset_((part.bytes(1) - slack) * static_cast<std::size_t>(rank)) {}
  const void* data() const { return bytes_.data() + offset_; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t offset_;
};

void checkAllgather(const Case& c, bool inPlace) {
  const Part &from = c.send, &to = c.receive;
  compare("MPI_Allgather of " + c.text, from.bytes(1), to.bytes(c.ranks), c.shift, c.seed,
          [&](bool isReference, const void* send, void* receive) {
            if (inPlace && isReference) {
              const Before own(receive, to, c.ranks, c.rank);
              return PMPI_Allgather(own.data(), to.count, to.type, receive, to.count, to.type, c.comm);
            }
            return (isReference ? PMPI_Allgather : MPI_Allgather)(inPlace ? MPI_IN_PLACE : send, from.count, from.type,
                                                                  receive, to.count, to.type, c.comm);
          });
}

void checkAlltoall(const Case& c, bool inPlace) {
  const Part &from = c.send, &to = c.receive;
  compare("MPI_Alltoall of " + c.text, from.bytes(c.ranks), to.bytes(c.ranks), c.shift, c.seed,
          [&](bool isReference, const void* send, void* receive) {
            if (inPlace && isReference) {
              const Before all(receive, to, c.ranks, 0);
              return PMPI_Alltoall(all.data(), to.count, to.type, receive, to.count, to.type, c.comm);
            }
            return (isReference ? PMPI_Alltoall : MPI_Alltoall)(inPlace ? MPI_IN_PLACE : send, from.count, from.type,
                                                                receive, to.count, to.type, c.comm);
          });
}

/// What the other side does not need is not even given.
void checkGather(const Case& c, bool inPlace) {
  const Part &from = c.send, &to = c.receive;
  compare("MPI_Gather to " + c.text, from.bytes(1), to.bytes(c.ranks), c.shift, c.seed,
          [&](bool isReference, const void* send, void* receive) {
            const auto call = isReference ? PMPI_Gather : MPI_Gather;
            if (!c.isRoot()) return call(send, from.count, from.type, nullptr, -1, MPI_DATATYPE_NULL, c.root, c.comm);
            if (inPlace && isReference) {
              const Before own(receive, to, c.ranks, c.rank);
              return call(own.data(), to.count, to.type, receive, to.count, to.type, c.root, c.comm);
            }
            return call(inPlace ? MPI_IN_PLACE : send, from.count, from.type, receive, to.count, to.type, c.root,
                        c.comm);
          });
}

void checkScatter(const Case& c, bool inPlace) {
  const Part &from = c.send, &to = c.receive;
  compare("MPI_Scatter from " + c.text, from.bytes(c.ranks), to.bytes(1), c.shift, c.seed,
          [&](bool isReference, const void* send, void* receive) {
            const auto call = isReference ? PMPI_Scatter : MPI_Scatter;
            if (!c.isRoot()) return call(nullptr, -1, MPI_DATATYPE_NULL, receive, to.count, to.type, c.root, c.comm);
            if (inPlace && isReference) {
              std::vector<std::byte> nowhere(to.bytes(1));
              return call(send, from.count, from.type, nowhere.data(), to.count, to.type, c.root, c.comm);
            }
            return call(send, from.count, from.type, inPlace ? MPI_IN_PLACE : receive, to.count, to.type, c.root,
                        c.comm);
          });
}

/// Blocks of unequal lengths: items of each rank, with gaps between them, the last rank's first.
struct Blocks {
  std::vector<int> counts, places;
  int elements = 0;

  Blocks(const std::vector<int>& items, int perItem, int gap) : counts(items.size()), places(items.size()) {
    for (std::size_t r = items.size(); r-- > 0;) {
      places[r] = elements;
      counts[r] = items[r] * perItem;
      elements += counts[r] + gap;
    }
  }
};

/// One call with a count for each rank. `given[from][to]`: items.
struct UnequalCase {
  const Case& common;
  const Pair& pair;
  std::vector<std::vector<int>> given;
  int gap;

  std::size_t self() const { return static_cast<std::size_t>(common.rank); }
  /// Those that each gives to all: the first of its row.
  std::vector<int> firsts() const {
    std::vector<int> items;
    for (const std::vector<int>& row : given) items.push_back(row[0]);
    return items;
  }
  std::size_t bytesOf(const Blocks& blocks, MPI_Datatype type) const { return Part{type, blocks.elements}.bytes(1); }
};

/// What a block is before a call in place, for the reference, which is not in place itself.
std::vector<std::byte> copyOf(const void* buffer, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(buffer);
  return {begin, begin + bytes};
}

MPI_Aint extentOf(MPI_Datatype type) {
  MPI_Aint low = 0, extent = 0;
  PMPI_Type_get_extent(type, &low, &extent);
  return extent;
}

void checkAllgatherv(const UnequalCase& c, bool inPlace) {
  const Blocks to(c.firsts(), c.pair.receivers, c.gap);
  const int own = c.given[c.self()][0] * c.pair.senders;
  const std::size_t bytes = c.bytesOf(to, c.pair.receive);
  compare("MPI_Allgatherv of " + c.common.text, Part{c.pair.send, own}.bytes(1), bytes, c.common.shift, c.common.seed,
          [&](bool isReference, const void* send, void* receive) {
            if (inPlace && isReference) {
              const std::vector<std::byte> before = copyOf(receive, bytes);
              return PMPI_Allgatherv(before.data() + to.places[c.self()] * extentOf(c.pair.receive),
                                     to.counts[c.self()], c.pair.receive, receive, to.counts.data(), to.places.data(),
                                     c.pair.receive, c.common.comm);
            }
            return (isReference ? PMPI_Allgatherv : MPI_Allgatherv)(inPlace ? MPI_IN_PLACE : send, own, c.pair.send,
                                                                    receive, to.counts.data(), to.places.data(),
                                                                    c.pair.receive, c.common.comm);
          });
}

void checkGatherv(const UnequalCase& c, bool inPlace) {
  const Blocks to(c.firsts(), c.pair.receivers, c.gap);
  const int own = c.given[c.self()][0] * c.pair.senders;
  const std::size_t bytes = c.bytesOf(to, c.pair.receive);
  compare("MPI_Gatherv to " + c.common.text, Part{c.pair.send, own}.bytes(1), bytes, c.common.shift, c.common.seed,
          [&](bool isReference, const void* send, void* receive) {
            const auto call = isReference ? PMPI_Gatherv : MPI_Gatherv;
            if (!c.common.isRoot())
              return call(send, own, c.pair.send, nullptr, nullptr, nullptr, MPI_DATATYPE_NULL, c.common.root,
                          c.common.comm);
            if (inPlace && isReference) {
              const std::vector<std::byte> before = copyOf(receive, bytes);
              return call(before.data() + to.places[c.self()] * extentOf(c.pair.receive), to.counts[c.self()],
                          c.pair.receive, receive, to.counts.data(), to.places.data(), c.pair.receive, c.common.root,
                          c.common.comm);
            }
            return call(inPlace ? MPI_IN_PLACE : send, own, c.pair.send, receive, to.counts.data(), to.places.data(),
                        c.pair.receive, c.common.root, c.common.comm);
          });
}

void checkScatterv(const UnequalCase& c, bool inPlace) {
  const Blocks from(c.firsts(), c.pair.senders, c.gap);
  const int own = c.given[c.self()][0] * c.pair.receivers;
  const std::size_t bytes = Part{c.pair.receive, own}.bytes(1);
  compare("MPI_Scatterv from " + c.common.text, c.bytesOf(from, c.pair.send), bytes, c.common.shift, c.common.seed,
          [&](bool isReference, const void* send, void* receive) {
            const auto call = isReference ? PMPI_Scatterv : MPI_Scatterv;
            if (!c.common.isRoot())
              return call(nullptr, nullptr, nullptr, MPI_DATATYPE_NULL, receive, own, c.pair.receive, c.common.root,
                          c.common.comm);
            std::vector<std::byte> nowhere(bytes);
            void* const to = !inPlace ? receive : isReference ? static_cast<void*>(nowhere.data()) : MPI_IN_PLACE;
            return call(send, from.counts.data(), from.places.data(), c.pair.send, to, own, c.pair.receive,
                        c.common.root, c.common.comm);
          });
}

void checkAlltoallv(const UnequalCase& c, bool inPlace) {
  std::vector<int> taken;
  for (const std::vector<int>& row : c.given) taken.push_back(row[c.self()]);
  std::vector<int> sent = c.given[c.self()];
  // In place, what two ranks give each other is of one length.
  for (std::size_t r = 0; inPlace && r < sent.size(); ++r)
    sent[r] = taken[r] = c.given[std::min(r, c.self())][std::max(r, c.self())];
  const Blocks from(sent, inPlace ? c.pair.receivers : c.pair.senders, c.gap), to(taken, c.pair.receivers, c.gap);
  const MPI_Datatype sendType = inPlace ? c.pair.receive : c.pair.send;
  const std::size_t bytes = c.bytesOf(to, c.pair.receive);
  compare("MPI_Alltoallv of " + c.common.text, c.bytesOf(from, sendType), bytes, c.common.shift, c.common.seed,
          [&](bool isReference, const void* send, void* receive) {
            const std::vector<std::byte> before = copyOf(receive, bytes);
            const void* given = !inPlace ? send : isReference ? static_cast<const void*>(before.data()) : MPI_IN_PLACE;
            return (isReference ? PMPI_Alltoallv : MPI_Alltoallv)(given, from.counts.data(), from.places.data(),
                                                                  sendType, receive, to.counts.data(), to.places.data(),
                                                                  c.pair.receive, c.common.comm);
          });
}

#if MPI_VERSION >= 4
/// The forms with large counts come the same way: one of each kind.
void checkLargeCounts(const UnequalCase& c) {
  const Blocks to(c.firsts(), c.pair.receivers, c.gap);
  const std::vector<MPI_Count> counts(to.counts.begin(), to.counts.end());
  const std::vector<MPI_Aint> places(to.places.begin(), to.places.end());
  const int own = c.given[c.self()][0] * c.pair.senders;
  compare("MPI_Allgatherv_c of " + c.common.text, Part{c.pair.send, own}.bytes(1), c.bytesOf(to, c.pair.receive),
          c.common.shift, c.common.seed, [&](bool isReference, const void* send, void* receive) {
            return (isReference ? PMPI_Allgatherv_c : MPI_Allgatherv_c)(send, own, c.pair.send, receive, counts.data(),
                                                                        places.data(), c.pair.receive, c.common.comm);
          });
  const int count = c.given[0][0] * c.pair.senders;
  compare("MPI_Bcast_c of " + c.common.text, 16, Part{c.pair.send, count}.bytes(1), c.common.shift, c.common.seed,
          [&](bool isReference, const void* /*send*/, void* buffer) {
            return (isReference ? PMPI_Bcast_c : MPI_Bcast_c)(buffer, count, c.pair.send, c.common.root, c.common.comm);
          });
}
#endif

void checkUnequal(const Case& common, const Pair& pair, Draws& draws, bool inPlace) {
  UnequalCase c{common, pair, {}, draws.upTo(2)};
  const int most = draws.upTo(3) == 0 ? 0 : draws.upTo(6) == 0 ? 5000 : 60;
  for (int from = 0; from < common.ranks; ++from) {
    c.given.emplace_back();
    for (int to = 0; to < common.ranks; ++to) c.given.back().push_back(draws.upTo(3) == 0 ? 0 : draws.upTo(most));
  }
  checkAllgatherv(c, inPlace);
  checkGatherv(c, inPlace);
  checkScatterv(c, inPlace);
  checkAlltoallv(c, inPlace);
#if MPI_VERSION >= 4
  if (!inPlace) checkLargeCounts(c);
#endif
}

}  // namespace

void checkMovements(MPI_Comm comm, Draws& draws, bool isTacc) {
  Case c{};
  c.comm = comm;
  PMPI_Comm_rank(comm, &c.rank);
  PMPI_Comm_size(comm, &c.ranks);
  for (const Pair& pair : pairs())
    for (int inPlace = 0; inPlace <= (isTacc ? 1 : 0); ++inPlace)
      for (c.root = 0; c.root < c.ranks; ++c.root) {
        int items = draws.count();
        // MPICH 4.0 itself fails to gather and scatter many of a type that ends in a gap.
        if (pair.send == MPI_DOUBLE_INT) items %= 100;
        c.send = {pair.send, items * pair.senders};
        c.receive = {pair.receive, items * pair.receivers};
        c.shift = draws.upTo(2 * c.ranks) == c.rank ? 1 : 0;
        c.seed = static_cast<unsigned>(draws.upTo(1 << 30) + c.rank);
        c.text = std::to_string(c.root) + " of " + std::to_string(c.ranks) + " ranks, " + std::to_string(items) +
                 " x " + pair.name + (inPlace != 0 ? ", in place" : "");
        checkBcast(c);
        checkAllgather(c, inPlace != 0);
        checkAlltoall(c, inPlace != 0);
        checkGather(c, inPlace != 0);
        checkScatter(c, inPlace != 0);
        checkUnequal(c, pair, draws, inPlace != 0);
        if (MPI_Barrier(comm) != MPI_SUCCESS) complain("MPI_Barrier");
      }
}

}  // namespace tacc::test
