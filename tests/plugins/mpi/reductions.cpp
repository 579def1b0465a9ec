// Reductions of every type and operation against plain loops, bit for bit: floating-point numbers are small integers,
// so that no order of adding them rounds. Not against PMPI: MPICH 4.0 and Open MPI 4.1 themselves take unsigned numbers
// for signed ones in a maximum, and Open MPI's sums of 8 bits saturate.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cases.hpp"

namespace tacc::test {
namespace {

enum class Kind { sum, product, maximum, minimum, exclusiveOr };

struct Type {
  const char* name;
  MPI_Datatype mpi;
  std::size_t bytes;
  bool isInteger, isTaken;
  /// `isTame`: numbers that every MPI gets right, few, small and not negative.
  void (*fill)(std::byte* to, std::size_t count, std::mt19937& engine, bool isTame);
  void (*combine)(Kind kind, std::byte* into, const std::byte* from, std::size_t count);
};

template <class Number>
void fill(std::byte* to, std::size_t count, std::mt19937& engine, bool isTame) {
  for (std::size_t i = 0; i < count; ++i) {
    Number number;
    if constexpr (std::is_floating_point_v<Number>)
      number = static_cast<Number>(static_cast<int>(engine() % 17) - 8);
    else if (isTame)
      number = static_cast<Number>(engine() % 4);
    else
      number = static_cast<Number>((static_cast<std::uint64_t>(engine()) << 32) | engine());
    std::memcpy(to + i * sizeof(Number), &number, sizeof number);
  }
}

template <class Number>
Number combined(Kind kind, Number a, Number b) {
  if (kind == Kind::maximum) return std::max(a, b);
  if (kind == Kind::minimum) return std::min(a, b);
  if constexpr (std::is_integral_v<Number>) {
    // Integers wrap.
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<Number>(kind == Kind::sum ? x + y : kind == Kind::product ? x * y : x ^ y);
  } else {
    return kind == Kind::sum ? a + b : a * b;
  }
}

template <class Number>
void combine(Kind kind, std::byte* into, const std::byte* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Number a, b;
    std::memcpy(&a, into + i * sizeof(Number), sizeof a);
    std::memcpy(&b, from + i * sizeof(Number), sizeof b);
    a = combined(kind, a, b);
    std::memcpy(into + i * sizeof(Number), &a, sizeof a);
  }
}

template <class Number>
Type type(const char* name, MPI_Datatype mpi, bool isTaken = true) {
  return {name, mpi, sizeof(Number), std::is_integral_v<Number>, isTaken, fill<Number>, combine<Number>};
}

std::vector<Type> types() {
  return {type<char>("char", MPI_CHAR),
          type<signed char>("signed char", MPI_SIGNED_CHAR),
          type<unsigned char>("unsigned char", MPI_UNSIGNED_CHAR),
          type<short>("short", MPI_SHORT, false),
          type<int>("int", MPI_INT),
          type<unsigned>("unsigned", MPI_UNSIGNED),
          type<long>("long", MPI_LONG),
          type<unsigned long>("unsigned long", MPI_UNSIGNED_LONG),
          type<long long>("long long", MPI_LONG_LONG),
          type<unsigned long long>("unsigned long long", MPI_UNSIGNED_LONG_LONG),
          type<std::int8_t>("int8_t", MPI_INT8_T),
          type<std::uint8_t>("uint8_t", MPI_UINT8_T),
          type<std::int32_t>("int32_t", MPI_INT32_T),
          type<std::uint32_t>("uint32_t", MPI_UINT32_T),
          type<std::int64_t>("int64_t", MPI_INT64_T),
          type<std::uint64_t>("uint64_t", MPI_UINT64_T),
          type<MPI_Aint>("MPI_Aint", MPI_AINT),
          type<MPI_Offset>("MPI_Offset", MPI_OFFSET),
          type<MPI_Count>("MPI_Count", MPI_COUNT),
          type<float>("float", MPI_FLOAT),
          type<double>("double", MPI_DOUBLE),
          type<int>("Fortran's integer", MPI_INTEGER),
          type<float>("Fortran's real", MPI_REAL),
          type<double>("Fortran's double precision", MPI_DOUBLE_PRECISION)};
}

struct Op {
  const char* name;
  MPI_Op mpi;
  Kind kind;
};

std::vector<Op> operations() {
  return {{"sum", MPI_SUM, Kind::sum},
          {"prod", MPI_PROD, Kind::product},
          {"max", MPI_MAX, Kind::maximum},
          {"min", MPI_MIN, Kind::minimum},
          {"bxor", MPI_BXOR, Kind::exclusiveOr}};
}

/// What is reduced on one communicator, and what must come of it.
class Reduction {
 public:
  /// `count`: elements that each rank gives.
  Reduction(MPI_Comm comm, const Type& type, const Op& op, std::size_t count, int shift, unsigned seed, bool isTame)
      : bytes_(count * type.bytes), send_(bytes_, shift), shift_(shift) {
    int ranks = 0;
    PMPI_Comm_size(comm, &ranks);
    std::mt19937 engine(seed);
    type.fill(send_.data(), count, engine, isTame);
    std::vector<std::byte> all(bytes_ * static_cast<std::size_t>(ranks));
    const auto each = static_cast<int>(bytes_);
    PMPI_Allgather(send_.data(), each, MPI_BYTE, all.data(), each, MPI_BYTE, comm);
    for (int rank = 1; rank < ranks; ++rank)
      type.combine(op.kind, all.data(), all.data() + bytes_ * static_cast<std::size_t>(rank), count);
    result_.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(bytes_));
  }

  /// `call(send, receive)` is to leave the part of the result from `begin` on at the receive buffer's beginning, of
  /// which `bytes` are that part; `bytes` 0: the buffer stays as it is. Nothing else changes.
  template <class Call>
  void expect(const std::string& what, bool inPlace, std::size_t begin, std::size_t bytes, const Call& call) const {
    Memory receive(inPlace ? bytes_ : bytes, shift_), send = send_;
    if (inPlace && bytes_ > 0) std::memcpy(receive.data(), send.data(), bytes_);
    std::vector<std::byte> expected = receive.contents();
    std::copy_n(result_.begin() + static_cast<std::ptrdiff_t>(begin), bytes, expected.begin());
    const int code = call(inPlace ? MPI_IN_PLACE : static_cast<const void*>(send.data()), receive.data());
    if (code != MPI_SUCCESS) complain(what + " returns " + std::to_string(code));
    if (send.contents() != send_.contents()) complain(what + " has changed what it sends");
    const std::vector<std::byte> found = receive.contents();
    for (std::size_t at = 0; at < found.size(); ++at)
      if (found[at] != expected[at]) complain(what + ": byte " + std::to_string(at) + " is wrong");
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  Memory send_;
  int shift_;
  std::vector<std::byte> result_;
};

void checkOne(MPI_Comm comm, Draws& draws, const Type& type, const Op& op, bool inPlace, bool isTame) {
  int rank = 0, ranks = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &ranks);
  const int count = draws.count();
  const int root = draws.upTo(ranks - 1);
  // One rank, or none, has a buffer that is not aligned.
  const int shift = draws.upTo(2 * ranks) == rank ? 1 : 0;
  const auto seed = static_cast<unsigned>(draws.upTo(1 << 30) + rank);
  const std::string text = std::string(type.name) + ", " + op.name + ", count " + std::to_string(count) +
                           (inPlace ? ", in place" : "") + ", " + std::to_string(ranks) + " ranks";
  const Reduction one(comm, type, op, static_cast<std::size_t>(count), shift, seed, isTame);
  one.expect("MPI_Allreduce of " + text, inPlace, 0, one.bytes(), [&](const void* send, void* receive) {
    return MPI_Allreduce(send, receive, count, type.mpi, op.mpi, comm);
  });
  one.expect("MPI_Reduce to " + std::to_string(root) + " of " + text, inPlace && rank == root, 0,
             rank == root ? one.bytes() : 0, [&](const void* send, void* receive) {
               return MPI_Reduce(send, rank == root ? receive : nullptr, count, type.mpi, op.mpi, root, comm);
             });
  const Reduction all(comm, type, op, static_cast<std::size_t>(count) * static_cast<std::size_t>(ranks), shift, seed,
                      isTame);
  all.expect("MPI_Reduce_scatter_block of " + text, inPlace, one.bytes() * static_cast<std::size_t>(rank), one.bytes(),
             [&](const void* send, void* receive) {
               return MPI_Reduce_scatter_block(send, receive, count, type.mpi, op.mpi, comm);
             });
}

}  // namespace

void checkReductions(MPI_Comm comm, Draws& draws, bool isTacc) {
  for (const Type& type : types())
    for (const Op& op : operations()) {
      const bool isPassed = op.kind == Kind::exclusiveOr || !type.isTaken;
      // Bits of addresses and of letters: not all MPIs have them.
      if (op.kind == Kind::exclusiveOr && (!type.isInteger || type.mpi == MPI_CHAR)) continue;
      checkOne(comm, draws, type, op, false, !isTacc || isPassed);
      if (isTacc && !isPassed) checkOne(comm, draws, type, op, true, false);
    }
}

}  // namespace tacc::test
