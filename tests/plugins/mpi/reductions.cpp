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

enum class Kind {
  sum,
  product,
  maximum,
  minimum,
  logicalAnd,
  logicalOr,
  logicalXor,
  bitAnd,
  bitOr,
  exclusiveOr,
  least,
  greatest
};

bool isLogical(Kind kind) { return kind >= Kind::logicalAnd && kind <= Kind::logicalXor; }
bool isBitwise(Kind kind) { return kind >= Kind::bitAnd && kind <= Kind::exclusiveOr; }
bool isPlace(Kind kind) { return kind >= Kind::least; }

struct Type {
  const char* name;
  MPI_Datatype mpi;
  std::size_t bytes;
  bool (*has)(Kind kind);  // as MPI's standard and both MPIs say
  /// `isTame`: numbers that every MPI gets right, few, small and not negative.
  void (*fill)(std::byte* to, std::size_t count, std::mt19937& engine, bool isTame);
  void (*combine)(Kind kind, std::byte* into, const std::byte* from, std::size_t count);
  std::size_t gapBegin = 0, gapEnd = 0;  // bytes of an element that mean nothing
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
    if (kind == Kind::logicalAnd) return static_cast<Number>(a != 0 && b != 0);
    if (kind == Kind::logicalOr) return static_cast<Number>(a != 0 || b != 0);
    if (kind == Kind::logicalXor) return static_cast<Number>((a != 0) != (b != 0));
    if (kind == Kind::bitAnd) return static_cast<Number>(a & b);
    if (kind == Kind::bitOr) return static_cast<Number>(a | b);
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

bool hasAll(Kind kind) { return !isPlace(kind); }
/// Bits and truth of letters, truth of addresses and of Fortran's numbers: not all MPIs have them.
bool hasNumbers(Kind kind) { return !isLogical(kind) && !isBitwise(kind) && !isPlace(kind); }
bool hasNumbersAndBits(Kind kind) { return !isLogical(kind) && !isPlace(kind); }

template <class Number>
Type type(const char* name, MPI_Datatype mpi, bool (*has)(Kind) = std::is_integral_v<Number> ? hasAll : hasNumbers) {
  return {name, mpi, sizeof(Number), has, fill<Number>, combine<Number>};
}

/// Of any values: `make` draws one, `join` makes one of two.
template <class Value, Value (*make)(std::mt19937&), Value (*join)(Kind, Value, Value)>
Type typeOf(const char* name, MPI_Datatype mpi, bool (*has)(Kind)) {
  return {name,
          mpi,
          sizeof(Value),
          has,
          [](std::byte* to, std::size_t count, std::mt19937& engine, bool) {
            for (std::size_t i = 0; i < count; ++i) {
              const Value value = make(engine);
              std::memcpy(to + i * sizeof(Value), &value, sizeof value);
            }
          },
          [](Kind kind, std::byte* into, const std::byte* from, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
              Value a, b;
              std::memcpy(static_cast<void*>(&a), into + i * sizeof(Value), sizeof a);
              std::memcpy(static_cast<void*>(&b), from + i * sizeof(Value), sizeof b);
              a = join(kind, a, b);
              std::memcpy(into + i * sizeof(Value), &a, sizeof a);
            }
          }};
}

template <class Number>
struct Pair {
  Number value;
  int place;
};
/// What lies between and behind its members is zero.
template <class Number>
Pair<Number> makePair(std::mt19937& engine) {
  Pair<Number> pair;
  std::memset(static_cast<void*>(&pair), 0, sizeof pair);
  pair.value = static_cast<Number>(engine() % 5);
  pair.place = static_cast<int>(engine() % 50);
  return pair;
}
template <class Number>
Pair<Number> joinPairs(Kind kind, Pair<Number> a, Pair<Number> b) {
  const bool isBetter = kind == Kind::least ? b.value < a.value : a.value < b.value;
  if (isBetter || (a.value == b.value && b.place < a.place)) {
    a.value = b.value;
    a.place = b.place;
  }
  return a;
}
template <class Number>
Type pair(const char* name, MPI_Datatype mpi) {
  Type made = typeOf<Pair<Number>, makePair<Number>, joinPairs<Number>>(name, mpi, isPlace);
  const bool isBehind = sizeof(Number) > sizeof(int);
  made.gapBegin = isBehind ? sizeof(Number) + sizeof(int) : sizeof(Number);
  made.gapEnd = isBehind ? sizeof(Pair<Number>) : sizeof(int);
  return made;
}

template <class Number>
struct Complex {
  Number real, imaginary;
};
/// So few and small that nothing rounds in a product of four, and so near the real axis that no part of it is zero:
/// whether a zero is negative depends on the order.
template <class Number>
Complex<Number> makeComplex(std::mt19937& engine) {
  return {static_cast<Number>(3 + engine() % 3), static_cast<Number>(1)};
}
template <class Number>
Complex<Number> joinComplex(Kind kind, Complex<Number> a, Complex<Number> b) {
  if (kind == Kind::sum) return {a.real + b.real, a.imaginary + b.imaginary};
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}
template <class Number>
Type complex(const char* name, MPI_Datatype mpi) {
  return typeOf<Complex<Number>, makeComplex<Number>, joinComplex<Number>>(
      name, mpi, [](Kind kind) { return kind == Kind::sum || kind == Kind::product; });
}

unsigned char makeTruth(std::mt19937& engine) { return engine() % 2 == 0 ? 0 : 1; }
unsigned char makeByte(std::mt19937& engine) { return static_cast<unsigned char>(engine()); }

std::vector<Type> types() {
  return {type<char>("char", MPI_CHAR, hasNumbers),
          type<signed char>("signed char", MPI_SIGNED_CHAR),
          type<unsigned char>("unsigned char", MPI_UNSIGNED_CHAR),
          type<short>("short", MPI_SHORT),
          type<unsigned short>("unsigned short", MPI_UNSIGNED_SHORT),
          type<std::int16_t>("int16_t", MPI_INT16_T),
          type<std::uint16_t>("uint16_t", MPI_UINT16_T),
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
          type<MPI_Aint>("MPI_Aint", MPI_AINT, hasNumbersAndBits),
          type<MPI_Offset>("MPI_Offset", MPI_OFFSET, hasNumbersAndBits),
          type<MPI_Count>("MPI_Count", MPI_COUNT, hasNumbersAndBits),
          type<float>("float", MPI_FLOAT),
          type<double>("double", MPI_DOUBLE),
          type<int>("Fortran's integer", MPI_INTEGER, hasNumbersAndBits),
          type<float>("Fortran's real", MPI_REAL),
          type<double>("Fortran's double precision", MPI_DOUBLE_PRECISION),
          type<std::int8_t>("Fortran's integer of 1 byte", MPI_INTEGER1, hasNumbersAndBits),
          type<std::int16_t>("Fortran's integer of 2 bytes", MPI_INTEGER2, hasNumbersAndBits),
          type<std::int32_t>("Fortran's integer of 4 bytes", MPI_INTEGER4, hasNumbersAndBits),
          type<std::int64_t>("Fortran's integer of 8 bytes", MPI_INTEGER8, hasNumbersAndBits),
          type<float>("Fortran's real of 4 bytes", MPI_REAL4),
          type<double>("Fortran's real of 8 bytes", MPI_REAL8),
          typeOf<unsigned char, makeTruth, combined<unsigned char>>("bool", MPI_C_BOOL, isLogical),
          typeOf<unsigned char, makeByte, combined<unsigned char>>("byte", MPI_BYTE, isBitwise),
          complex<float>("complex", MPI_C_FLOAT_COMPLEX),
          complex<double>("double complex", MPI_C_DOUBLE_COMPLEX),
          complex<double>("Fortran's double complex", MPI_DOUBLE_COMPLEX),
          complex<float>("Fortran's complex of 8 bytes", MPI_COMPLEX8),
          complex<double>("Fortran's complex of 16 bytes", MPI_COMPLEX16),
          pair<float>("float and int", MPI_FLOAT_INT),
          pair<double>("double and int", MPI_DOUBLE_INT),
          pair<long>("long and int", MPI_LONG_INT),
          pair<int>("two ints", MPI_2INT),
          pair<short>("short and int", MPI_SHORT_INT)};
}

struct Op {
  const char* name;
  MPI_Op mpi;
  Kind kind;
};

std::vector<Op> operations() {
  return {{"sum", MPI_SUM, Kind::sum},          {"prod", MPI_PROD, Kind::product},
          {"max", MPI_MAX, Kind::maximum},      {"min", MPI_MIN, Kind::minimum},
          {"land", MPI_LAND, Kind::logicalAnd}, {"lor", MPI_LOR, Kind::logicalOr},
          {"lxor", MPI_LXOR, Kind::logicalXor}, {"band", MPI_BAND, Kind::bitAnd},
          {"bor", MPI_BOR, Kind::bitOr},        {"bxor", MPI_BXOR, Kind::exclusiveOr},
          {"minloc", MPI_MINLOC, Kind::least},  {"maxloc", MPI_MAXLOC, Kind::greatest}};
}

/// What is reduced on one communicator, and what must come of it.
class Reduction {
 public:
  /// `count`: elements that each rank gives; `behind`: of how many ranks they are combined, 0: of all.
  Reduction(MPI_Comm comm, const Type& type, const Op& op, std::size_t count, int shift, unsigned seed, bool isTame,
            int behind = 0)
      : type_(type), bytes_(count * type.bytes), send_(bytes_, shift), shift_(shift) {
    int ranks = 0;
    PMPI_Comm_size(comm, &ranks);
    std::mt19937 engine(seed);
    type.fill(send_.data(), count, engine, isTame);
    std::vector<std::byte> all(bytes_ * static_cast<std::size_t>(ranks));
    const auto each = static_cast<int>(bytes_);
    PMPI_Allgather(send_.data(), each, MPI_BYTE, all.data(), each, MPI_BYTE, comm);
    for (int rank = 1; rank < (behind == 0 ? ranks : behind); ++rank)
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
      if (found[at] != expected[at] && !isGap(at)) complain(what + ": byte " + std::to_string(at) + " is wrong");
  }
  std::size_t bytes() const { return bytes_; }

 private:
  bool isGap(std::size_t byte) const {
    const std::size_t at = byte % type_.bytes;
    return at >= type_.gapBegin && at < type_.gapEnd;
  }

  const Type& type_;
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
  std::vector<int> counts(static_cast<std::size_t>(ranks));
  for (int left = count * ranks, r = 0; r < ranks; left -= counts[static_cast<std::size_t>(r)], ++r)
    counts[static_cast<std::size_t>(r)] = r + 1 == ranks ? left : draws.upTo(left);
  std::size_t before = 0;
  for (int r = 0; r < rank; ++r) before += static_cast<std::size_t>(counts[static_cast<std::size_t>(r)]);
  all.expect("MPI_Reduce_scatter of " + text, inPlace, before * type.bytes,
             static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]) * type.bytes,
             [&](const void* send, void* receive) {
               return MPI_Reduce_scatter(send, receive, counts.data(), type.mpi, op.mpi, comm);
             });
  const Reduction upToHere(comm, type, op, static_cast<std::size_t>(count), shift, seed, isTame, rank + 1);
  upToHere.expect("MPI_Scan of " + text, inPlace, 0, one.bytes(), [&](const void* send, void* receive) {
    return MPI_Scan(send, receive, count, type.mpi, op.mpi, comm);
  });
  const Reduction beforeHere(comm, type, op, static_cast<std::size_t>(count), shift, seed, isTame, rank);
  beforeHere.expect(
      "MPI_Exscan of " + text, inPlace, 0, rank == 0 ? 0 : one.bytes(),
      [&](const void* send, void* receive) { return MPI_Exscan(send, receive, count, type.mpi, op.mpi, comm); });
}

}  // namespace

void checkReductions(MPI_Comm comm, Draws& draws, bool isTacc) {
  for (const Type& type : types())
    for (const Op& op : operations()) {
      if (!type.has(op.kind) || type.mpi == MPI_DATATYPE_NULL) continue;
      checkOne(comm, draws, type, op, false, !isTacc);
      if (isTacc) checkOne(comm, draws, type, op, true, false);
    }
}

}  // namespace tacc::test
