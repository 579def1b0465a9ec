// Reductions of every type and operation against PMPI, bit for bit: floating-point numbers are small integers, so that
// no order of adding them rounds.
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>

#include "cases.hpp"

namespace tacc::test {
namespace {

struct Type {
  const char* name;
  MPI_Datatype mpi;
  std::size_t bytes;
  void (*fill)(std::byte* to, std::size_t count, std::mt19937& engine);
};

template <class Number>
void fill(std::byte* to, std::size_t count, std::mt19937& engine) {
  for (std::size_t i = 0; i < count; ++i) {
    Number number;
    if constexpr (std::is_floating_point_v<Number>)
      number = static_cast<Number>(static_cast<int>(engine() % 17) - 8);
    else
      number = static_cast<Number>((static_cast<std::uint64_t>(engine()) << 32) | engine());
    std::memcpy(to + i * sizeof(Number), &number, sizeof number);
  }
}

template <class Number>
Type type(const char* name, MPI_Datatype mpi) {
  return {name, mpi, sizeof(Number), fill<Number>};
}

/// short and long double are passed on.
std::vector<Type> types() {
  return {type<char>("char", MPI_CHAR),
          type<signed char>("signed char", MPI_SIGNED_CHAR),
          type<unsigned char>("unsigned char", MPI_UNSIGNED_CHAR),
          type<short>("short", MPI_SHORT),
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
          type<long double>("long double", MPI_LONG_DOUBLE)};
}

struct Op {
  const char* name;
  MPI_Op mpi;
  bool isPassed;  // and only for integers
};

std::vector<Op> operations() {
  return {{"sum", MPI_SUM, false},
          {"prod", MPI_PROD, false},
          {"max", MPI_MAX, false},
          {"min", MPI_MIN, false},
          {"bxor", MPI_BXOR, true}};
}

using Run = std::function<int(bool isReference, const void* send, void* receive)>;

struct Sizes {
  std::size_t send, receive;  // bytes
};

/// Runs both with the same numbers and compares all of the receive buffer, of which `result` bytes are the result; what
/// comes after that is compared where MPI says that nobody writes it.
void compare(const std::string& what, const Type& type, const Sizes& sizes, std::size_t result, bool inPlace, int shift,
             unsigned seed, const Run& run) {
  std::mt19937 engine(seed);
  Memory send(sizes.send, shift);
  type.fill(send.data(), sizes.send / type.bytes, engine);
  Memory expected(sizes.receive, 0), found(sizes.receive, shift);
  type.fill(expected.data(), sizes.receive / type.bytes, engine);
  if (sizes.receive > 0) std::memcpy(found.data(), inPlace ? send.data() : expected.data(), sizes.receive);
  Memory aligned(sizes.send, 0);
  if (sizes.send > 0) std::memcpy(aligned.data(), send.data(), sizes.send);
  if (run(true, aligned.data(), expected.data()) != MPI_SUCCESS) complain("PMPI: " + what);
  if (run(false, inPlace ? MPI_IN_PLACE : send.data(), found.data()) != MPI_SUCCESS) complain(what);
  auto wanted = expected.contents(), got = found.contents();
  if (result < sizes.receive) {
    wanted.resize(result);
    got.resize(result);
  }
  if (wanted == got) return;
  std::size_t at = 0;
  while (wanted[at] == got[at]) ++at;
  complain(what + ": byte " + std::to_string(at) + " differs from PMPI's");
}

void checkOne(MPI_Comm comm, Draws& draws, const Type& type, const Op& op, bool inPlace) {
  int rank = 0, ranks = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &ranks);
  const int count = draws.count();
  const int root = draws.upTo(ranks - 1);
  // One rank, or none, has a buffer that is not aligned.
  const int shift = draws.upTo(2 * ranks) == rank ? 1 : 0;
  const auto seed = static_cast<unsigned>(draws.upTo(1 << 30) + rank);
  const std::size_t bytes = static_cast<std::size_t>(count) * type.bytes;
  const std::string text = std::string(type.name) + ", " + op.name + ", count " + std::to_string(count) +
                           (inPlace ? ", in place" : "") + ", " + std::to_string(ranks) + " ranks";
  compare("MPI_Allreduce of " + text, type, {bytes, bytes}, bytes, inPlace, shift, seed,
          [&](bool isReference, const void* send, void* receive) {
            return (isReference ? PMPI_Allreduce : MPI_Allreduce)(send, receive, count, type.mpi, op.mpi, comm);
          });
  compare("MPI_Reduce to " + std::to_string(root) + " of " + text, type, {bytes, bytes}, bytes, inPlace && rank == root,
          shift, seed, [&](bool isReference, const void* send, void* receive) {
            return (isReference ? PMPI_Reduce : MPI_Reduce)(send, rank == root ? receive : nullptr, count, type.mpi,
                                                            op.mpi, root, comm);
          });
  const std::size_t all = bytes * static_cast<std::size_t>(ranks);
  compare("MPI_Reduce_scatter_block of " + text, type, {all, inPlace ? all : bytes}, bytes, inPlace, shift, seed,
          [&](bool isReference, const void* send, void* receive) {
            return (isReference ? PMPI_Reduce_scatter_block : MPI_Reduce_scatter_block)(send, receive, count, type.mpi,
                                                                                        op.mpi, comm);
          });
}

}  // namespace

void checkReductions(MPI_Comm comm, Draws& draws, bool usesInPlace) {
  for (const Type& type : types())
    for (const Op& op : operations()) {
      const bool isInteger = type.mpi != MPI_FLOAT && type.mpi != MPI_DOUBLE && type.mpi != MPI_LONG_DOUBLE;
      // Bits of addresses and of letters: not all MPIs have them.
      if (op.isPassed && (!isInteger || type.mpi == MPI_CHAR)) continue;
      checkOne(comm, draws, type, op, false);
      const bool isPassed = op.isPassed || type.mpi == MPI_SHORT || type.mpi == MPI_LONG_DOUBLE;
      if (usesInPlace && !isPassed) checkOne(comm, draws, type, op, true);
    }
}

}  // namespace tacc::test
