// Collectives that move data, against PMPI, byte for byte: also with types that have gaps or an order of their own on
// one side and none on the other.
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
        if (MPI_Barrier(comm) != MPI_SUCCESS) complain("MPI_Barrier");
      }
}

}  // namespace tacc::test
