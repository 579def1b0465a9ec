// MPI_IN_PLACE in every call that allows it, blocking, nonblocking and persistent. What comes of each is known by a
// formula, so the same program says whether an MPI does it right without the library: what this one does wrong is in
// mpi_faults.hpp, and left out where MPI itself serves.
#include <mpi.h>

#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#endif

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "cases.hpp"
#include "corners.hpp"
#include "mpi_faults.hpp"

#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name##_init
#else
#define PERSISTENT(name) MPIX_##name##_init
#endif

namespace tacc::test {
namespace {

using Numbers = std::vector<int>;

/// An element of a type, by the places of its numbers.
struct Shape {
  const char* name;
  MPI_Datatype type;
  std::vector<int> places;  // in ints from the element's begin, in the order of the type
  int extent;               // in ints
  int numbers() const { return static_cast<int>(places.size()); }
};

/// Never freed: they live as long as the program.
const std::array<Shape, 4>& shapes() {
  static const std::array<Shape, 4> all = [] {
    const std::array<int, 3> ones{1, 1, 1}, spread{0, 2, 5}, back{2, 1, 0};
    MPI_Datatype whole = MPI_DATATYPE_NULL, holes = MPI_DATATYPE_NULL, gapped = MPI_DATATYPE_NULL,
                 backwards = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(3, MPI_INT, &whole);
    MPI_Type_indexed(3, ones.data(), spread.data(), MPI_INT, &holes);
    MPI_Type_create_resized(holes, 0, 7 * static_cast<MPI_Aint>(sizeof(int)), &gapped);
    MPI_Type_free(&holes);
    MPI_Type_indexed(3, ones.data(), back.data(), MPI_INT, &backwards);
    for (MPI_Datatype* type : {&whole, &gapped, &backwards}) MPI_Type_commit(type);
    return std::array<Shape, 4>{Shape{"int", MPI_INT, {0}, 1}, Shape{"three ints", whole, {0, 1, 2}, 3},
                                Shape{"ints with gaps", gapped, {0, 2, 5}, 7},
                                Shape{"reversed ints", backwards, {2, 1, 0}, 3}};
  }();
  return all;
}

/// What one rank gives at `i` to another; of what goes to all alike `to` is 0.
int valueOf(int from, int to, int i) { return 1000003 * (from + 1) + 10007 * (to + 1) + i; }

constexpr int untouched = -77, guard = 16;  // ints behind each buffer, which nobody may write

/// One call on a communicator, and what it is drawn from.
struct Drawn {
  MPI_Comm comm;
  Call call;
  Form form;
  int root, count;  // elements of a block, where blocks are equal
  const Shape& shape;
  std::vector<int> counts;  // elements of the block of each rank, where they are not
  int rank = rankIn(comm), ranks = ranksIn(comm);

  bool isRoot() const { return rank == root; }
  std::string text() const {
    return std::string(nameOf(form)) + "MPI_" + nameOf(call) + " in place, count " + std::to_string(count) + " x " +
           shape.name + ", root " + std::to_string(root) + " of " + std::to_string(ranks);
  }
};

/// Blocks of a buffer. Those of unequal lengths lie with gaps between them, the last rank's first.
struct Blocks {
  Blocks(const Drawn& drawn, bool isUnequal) {
    const auto ranks = static_cast<std::size_t>(drawn.ranks);
    counts.assign(ranks, drawn.count);
    places.resize(ranks);
    if (isUnequal) counts = drawn.counts;
    if (drawn.call == Call::alltoallv)  // what two ranks exchange is of one length
      for (int& count : counts) count = count * drawn.counts[static_cast<std::size_t>(drawn.rank)] % 1009;
    for (std::size_t i = 0; i < ranks; ++i) {
      const std::size_t r = isUnequal ? ranks - 1 - i : i;
      places[r] = elements;
      elements += counts[r] + (isUnequal ? 2 : 0);
    }
  }
  int countOf(int rank) const { return counts[static_cast<std::size_t>(rank)]; }
  int placeOf(int rank) const { return places[static_cast<std::size_t>(rank)]; }
  std::vector<int> counts, places;
  int elements = 0;
};

/// Writes block `block` as `from` gives it to `to`.
void put(Numbers& buffer, const Shape& shape, const Blocks& blocks, int block, int from, int to) {
  const int numbers = blocks.countOf(block) * shape.numbers();
  for (int i = 0; i < numbers; ++i) {
    const int element = blocks.placeOf(block) + i / shape.numbers();
    const int place = element * shape.extent + shape.places[static_cast<std::size_t>(i % shape.numbers())];
    buffer[static_cast<std::size_t>(place)] = valueOf(from, to, i);
  }
}

Numbers emptyOf(const Shape& shape, const Blocks& blocks) {
  return Numbers(static_cast<std::size_t>(blocks.elements * shape.extent + guard), untouched);
}

/// A call's buffers: what is given in place or received, before it and after it; and what ranks send that are not in
/// place, plain numbers.
struct Buffers {
  Numbers before, expected, plain;
  std::size_t compared = 0;  // ints that the call says something about; all but in reduce-scatters
};

Buffers movedBy(const Drawn& drawn) {
  const Shape& shape = drawn.shape;
  const Blocks blocks(drawn, isUnequal(drawn.call));
  Buffers b;
  b.before = b.expected = emptyOf(shape, blocks);
  const int own = blocks.countOf(drawn.rank) * shape.numbers();
  switch (drawn.call) {
    case Call::allgather:
    case Call::allgatherv:
      put(b.before, shape, blocks, drawn.rank, drawn.rank, 0);
      for (int r = 0; r < drawn.ranks; ++r) put(b.expected, shape, blocks, r, r, 0);
      break;
    case Call::alltoall:
    case Call::alltoallv:
      for (int r = 0; r < drawn.ranks; ++r) {
        put(b.before, shape, blocks, r, drawn.rank, r);
        put(b.expected, shape, blocks, r, r, drawn.rank);
      }
      break;
    case Call::gather:
    case Call::gatherv:
      for (int i = 0; i < own; ++i) b.plain.push_back(valueOf(drawn.rank, 0, i));
      if (!drawn.isRoot()) break;
      put(b.before, shape, blocks, drawn.rank, drawn.rank, 0);
      for (int r = 0; r < drawn.ranks; ++r) put(b.expected, shape, blocks, r, r, 0);
      break;
    default:  // a scatter: the root's buffer stays, and others get plain numbers
      for (int r = 0; drawn.isRoot() && r < drawn.ranks; ++r) put(b.before, shape, blocks, r, drawn.root, r);
      b.expected = b.before;
      if (drawn.isRoot()) break;
      b.before.assign(static_cast<std::size_t>(own + guard), untouched);
      b.expected = b.before;
      for (int i = 0; i < own; ++i) b.expected[static_cast<std::size_t>(i)] = valueOf(drawn.root, drawn.rank, i);
  }
  b.compared = b.expected.size();
  return b;
}

/// Sums of the ranks below `end`.
int sumUntil(int end, int to, int i) {
  unsigned sum = 0;
  for (int r = 0; r < end; ++r) sum += static_cast<unsigned>(valueOf(r, to, i));
  return static_cast<int>(sum);
}

Buffers reducedBy(const Drawn& drawn) {
  const bool isScattered = drawn.call == Call::reduceScatter || drawn.call == Call::reduceScatterBlock;
  const bool hasCounts = drawn.call == Call::reduceScatter;
  Buffers b;
  int begin = 0;  // of the own part, in ints
  const auto countOf = [&](int r) { return hasCounts ? drawn.counts[static_cast<std::size_t>(r)] : drawn.count; };
  int numbers = drawn.count;
  if (isScattered) {
    numbers = 0;
    for (int r = 0; r < drawn.ranks; ++r) {
      if (r == drawn.rank) begin = numbers;
      numbers += countOf(r);
    }
  }
  b.before.assign(static_cast<std::size_t>(numbers + guard), untouched);
  for (int i = 0; i < numbers; ++i) b.before[static_cast<std::size_t>(i)] = valueOf(drawn.rank, 0, i);
  b.expected = b.before;
  b.compared = b.expected.size();
  if (drawn.call == Call::reduce && !drawn.isRoot()) {
    b.plain.assign(b.before.begin(), b.before.end() - guard);
    return b;
  }
  // MPI_Exscan says nothing of rank 0's buffer; reduce-scatters say nothing of what is behind the own part.
  if (drawn.call == Call::exscan && drawn.rank == 0) b.compared = 0;
  const int own = isScattered ? countOf(drawn.rank) : numbers;
  if (isScattered) b.compared = static_cast<std::size_t>(own);
  const int end = drawn.call == Call::scan ? drawn.rank + 1 : drawn.call == Call::exscan ? drawn.rank : drawn.ranks;
  for (int i = 0; i < own; ++i) b.expected[static_cast<std::size_t>(i)] = sumUntil(end, 0, begin + i);
  return b;
}

#define CALL(name, iName, ...)                                                       \
  (drawn.form == Form::blocking      ? MPI_##name(__VA_ARGS__, drawn.comm)           \
   : drawn.form == Form::nonblocking ? MPI_##iName(__VA_ARGS__, drawn.comm, request) \
                                     : PERSISTENT(name)(__VA_ARGS__, drawn.comm, MPI_INFO_NULL, request))

int makeMovement(const Drawn& drawn, Buffers& b, Numbers& buffer, MPI_Request* request) {
  const Blocks blocks(drawn, isUnequal(drawn.call));
  const MPI_Datatype type = drawn.shape.type, none = MPI_DATATYPE_NULL;
  const int own = blocks.countOf(drawn.rank) * drawn.shape.numbers(), count = drawn.count;
  const int *const counts = blocks.counts.data(), *const places = blocks.places.data();
  const bool isRoot = drawn.isRoot();
  // Arguments that MPI does not look at are of no use.
  switch (drawn.call) {
    case Call::allgather:
      return CALL(Allgather, Iallgather, MPI_IN_PLACE, 0, none, buffer.data(), count, type);
    case Call::allgatherv:
      return CALL(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, none, buffer.data(), counts, places, type);
    case Call::alltoall:
      return CALL(Alltoall, Ialltoall, MPI_IN_PLACE, 0, none, buffer.data(), count, type);
    case Call::alltoallv:
      return CALL(Alltoallv, Ialltoallv, MPI_IN_PLACE, nullptr, nullptr, none, buffer.data(), counts, places, type);
    case Call::gather:
      return isRoot ? CALL(Gather, Igather, MPI_IN_PLACE, 0, none, buffer.data(), count, type, drawn.root)
                    : CALL(Gather, Igather, b.plain.data(), own, MPI_INT, nullptr, 0, none, drawn.root);
    case Call::gatherv:
      return isRoot
                 ? CALL(Gatherv, Igatherv, MPI_IN_PLACE, 0, none, buffer.data(), counts, places, type, drawn.root)
                 : CALL(Gatherv, Igatherv, b.plain.data(), own, MPI_INT, nullptr, nullptr, nullptr, none, drawn.root);
    case Call::scatter:
      return isRoot ? CALL(Scatter, Iscatter, buffer.data(), count, type, MPI_IN_PLACE, 0, none, drawn.root)
                    : CALL(Scatter, Iscatter, nullptr, 0, none, buffer.data(), own, MPI_INT, drawn.root);
    default:
      return isRoot
                 ? CALL(Scatterv, Iscatterv, buffer.data(), counts, places, type, MPI_IN_PLACE, 0, none, drawn.root)
                 : CALL(Scatterv, Iscatterv, nullptr, nullptr, nullptr, none, buffer.data(), own, MPI_INT, drawn.root);
  }
}

int makeReduction(const Drawn& drawn, Buffers& b, Numbers& buffer, MPI_Request* request) {
  const MPI_Datatype type = MPI_INT;
  const MPI_Op op = MPI_SUM;
  const int count = drawn.count;
  switch (drawn.call) {
    case Call::allreduce:
      return CALL(Allreduce, Iallreduce, MPI_IN_PLACE, buffer.data(), count, type, op);
    case Call::reduce:
      return drawn.isRoot() ? CALL(Reduce, Ireduce, MPI_IN_PLACE, buffer.data(), count, type, op, drawn.root)
                            : CALL(Reduce, Ireduce, b.plain.data(), nullptr, count, type, op, drawn.root);
    case Call::scan:
      return CALL(Scan, Iscan, MPI_IN_PLACE, buffer.data(), count, type, op);
    case Call::exscan:
      return CALL(Exscan, Iexscan, MPI_IN_PLACE, buffer.data(), count, type, op);
    case Call::reduceScatterBlock:
      return CALL(Reduce_scatter_block, Ireduce_scatter_block, MPI_IN_PLACE, buffer.data(), count, type, op);
    default:
      return CALL(Reduce_scatter, Ireduce_scatter, MPI_IN_PLACE, buffer.data(), drawn.counts.data(), type, op);
  }
}

/// Persistent ones are started three times, each time on the same buffer.
void check(const Drawn& drawn) {
  Buffers b = isReduction(drawn.call) ? reducedBy(drawn) : movedBy(drawn);
  b.plain.reserve(1);  // buffers of no length have addresses too
  const Numbers given = b.plain;
  Numbers buffer = b.before;
  MPI_Request request = MPI_REQUEST_NULL;
  const int code =
      isReduction(drawn.call) ? makeReduction(drawn, b, buffer, &request) : makeMovement(drawn, b, buffer, &request);
  if (code != MPI_SUCCESS) complain(drawn.text() + " returns " + std::to_string(code));
  for (int start = 0; start < (drawn.form == Form::persistent ? 3 : 1); ++start) {
    if (start > 0) buffer = b.before;
    if (drawn.form == Form::persistent && MPI_Start(&request) != MPI_SUCCESS)
      complain(drawn.text() + " cannot be started");
    if (MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS) complain(drawn.text() + " cannot be completed");
    for (std::size_t i = 0; i < buffer.size(); ++i) {
      const bool isGuard = i + guard >= buffer.size();
      if ((i < b.compared || isGuard) && buffer[i] != b.expected[i])
        complain(drawn.text() + ", start " + std::to_string(start) + ": place " + std::to_string(i) + " of " +
                 std::to_string(buffer.size() - guard) + " is " + std::to_string(buffer[i]) + " and not " +
                 std::to_string(b.expected[i]));
    }
    if (b.plain != given) complain(drawn.text() + " writes into what it sends");
  }
  if (drawn.form == Form::persistent) MPI_Request_free(&request);
}

void checkAll(MPI_Comm comm, Call call, Form form, bool isTacc) {
  const int ranks = ranksIn(comm);
  const bool isServedByMpi = !isTacc || ranks == 1;
  int id = 0;
  for (const Shape& shape : shapes()) {
    if (isReduction(call) && &shape != shapes().data()) break;
    for (const int count : {0, 1, 3, 64, 1001, 24001}) {
      if (isServedByMpi && isWrongInMpi({call, form, ranks, static_cast<std::size_t>(count) * sizeof(int)})) continue;
      // A third of the blocks of unequal lengths have none; some calls have none at all.
      std::vector<int> counts;
      for (int r = 0; r < ranks; ++r) counts.push_back((r + id) % 3 == 0 ? 0 : count / 2 + r);
      for (int root = 0; root < (isRooted(call) ? ranks : 1); ++root)
        check({comm, call, form, root, shape.numbers() > 1 ? count / 3 : count, shape, counts});
      ++id;
    }
  }
}

}  // namespace

void checkInPlace(bool isTacc) {
  MPI_Comm turned = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rankIn(MPI_COMM_WORLD), &turned);
  // Nonblocking calls are taken over where there is a tacc communicator.
  MPI_Barrier(turned);
  const char* const only = std::getenv("TACC_TEST_ONLY");
  for (int call = 0; call < static_cast<int>(Call::bcast); ++call)
    for (const Form form : {Form::blocking, Form::nonblocking, Form::persistent}) {
      if (only != nullptr && std::string(nameOf(form)) + nameOf(static_cast<Call>(call)) != only) continue;
      checkAll(turned, static_cast<Call>(call), form, isTacc);
    }
  MPI_Comm_free(&turned);
}

}  // namespace tacc::test
