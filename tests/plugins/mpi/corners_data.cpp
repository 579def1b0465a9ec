// What MPI allows and few programs do with buffers, counts and types. Each result is known, so no call is compared with
// PMPI's: MPICH 4.0 itself fails in some calls in place, which are left to where tacc serves them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "cases.hpp"
#include "corners.hpp"

namespace tacc::test {
namespace {

using Numbers = std::vector<int>;

int valueOf(int from, int to, int at) { return 10000 * from + 100 * to + at; }

void expectEqual(const Numbers& found, const Numbers& expected, const char* what) {
  for (std::size_t at = 0; at < expected.size(); ++at)
    if (found[at] != expected[at])
      complain(std::string(what) + ": place " + std::to_string(at) + " is " + std::to_string(found[at]) + " and not " +
               std::to_string(expected[at]));
}

/// Blocks of 0 to 3 numbers, with gaps between, the last rank's first.
struct ScatteredBlocks {
  explicit ScatteredBlocks(int ranks, int first = 0) {
    int place = 2;
    counts.resize(static_cast<std::size_t>(ranks));
    places.resize(counts.size());
    for (int r = ranks - 1; r >= 0; --r) {
      const auto at = static_cast<std::size_t>(r);
      counts[at] = (r + first) % 4;
      places[at] = place;
      place += counts[at] + 1;
    }
    size = static_cast<std::size_t>(place);
  }
  int countOf(int rank) const { return counts[static_cast<std::size_t>(rank)]; }
  int placeOf(int rank) const { return places[static_cast<std::size_t>(rank)]; }
  void put(Numbers& numbers, int rank, int from, int to) const {
    for (int i = 0; i < countOf(rank); ++i) numbers[static_cast<std::size_t>(placeOf(rank) + i)] = valueOf(from, to, i);
  }
  Numbers counts, places;
  std::size_t size = 0;
};

Numbers blockOf(int from, int to, int count) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = valueOf(from, to, i);
  return numbers;
}

/// `shift` moves the lengths around, so that each rank once has none.
void useScatteredBlocks(MPI_Comm comm, int shift, bool isTacc) {
  const int rank = rankIn(comm), ranks = ranksIn(comm), root = shift % ranks;
  const ScatteredBlocks blocks(ranks, shift);
  const Numbers own = blockOf(rank, 0, blocks.countOf(rank));
  Numbers gathered(blocks.size, -1), expected = gathered;
  for (int r = 0; r < ranks; ++r) blocks.put(expected, r, r, 0);
  MPI_Allgatherv(own.data(), blocks.countOf(rank), MPI_INT, gathered.data(), blocks.counts.data(), blocks.places.data(),
                 MPI_INT, comm);
  expectEqual(gathered, expected, "MPI_Allgatherv");
  gathered.assign(blocks.size, -1);
  blocks.put(gathered, rank, rank, 0);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered.data(), blocks.counts.data(), blocks.places.data(),
                 MPI_INT, comm);
  expectEqual(gathered, expected, "MPI_Allgatherv in place");

  // What is not looked at on others is not given there.
  gathered.assign(blocks.size, -1);
  if (rank == root) {
    blocks.put(gathered, rank, rank, 0);
    MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered.data(), blocks.counts.data(), blocks.places.data(),
                MPI_INT, root, comm);
    expectEqual(gathered, expected, "MPI_Gatherv in place");
    MPI_Scatterv(gathered.data(), blocks.counts.data(), blocks.places.data(), MPI_INT, MPI_IN_PLACE, 0,
                 MPI_DATATYPE_NULL, root, comm);
    expectEqual(gathered, expected, "MPI_Scatterv in place");
  } else {
    MPI_Gatherv(own.data(), blocks.countOf(rank), MPI_INT, nullptr, nullptr, nullptr, MPI_DATATYPE_NULL, root, comm);
    Numbers received(own.size() + 1, -1), wanted = own;
    wanted.push_back(-1);
    MPI_Scatterv(nullptr, nullptr, nullptr, MPI_DATATYPE_NULL, received.data(), blocks.countOf(rank), MPI_INT, root,
                 comm);
    expectEqual(received, wanted, "MPI_Scatterv");
  }

  // What two ranks exchange is as long both ways, as in place it has to be.
  ScatteredBlocks both(ranks, rank + shift);
  Numbers mine(both.size, -1), theirs = mine, received = mine;
  for (int r = 0; r < ranks; ++r) {
    both.put(mine, r, rank, r);
    both.put(theirs, r, r, rank);
  }
  MPI_Alltoallv(mine.data(), both.counts.data(), both.places.data(), MPI_INT, received.data(), both.counts.data(),
                both.places.data(), MPI_INT, comm);
  expectEqual(received, theirs, "MPI_Alltoallv");
  if (isTacc) {
    received = mine;
    MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, received.data(), both.counts.data(),
                  both.places.data(), MPI_INT, comm);
    expectEqual(received, theirs, "MPI_Alltoallv in place");
  }

  const int all = std::accumulate(blocks.counts.begin(), blocks.counts.end(), 0);
  Numbers summands(static_cast<std::size_t>(all) + 1), sums(summands.size(), -1), wanted(sums.size(), -1);
  std::iota(summands.begin(), summands.end(), rank);
  const int before = std::accumulate(blocks.counts.begin(), blocks.counts.begin() + rank, 0);
  for (int i = 0; i < blocks.countOf(rank); ++i)
    wanted[static_cast<std::size_t>(i)] = ranks * (before + i) + ranks * (ranks - 1) / 2;
  MPI_Reduce_scatter(summands.data(), sums.data(), blocks.counts.data(), MPI_INT, MPI_SUM, comm);
  expectEqual(sums, wanted, "MPI_Reduce_scatter");
  sums = summands;
  MPI_Reduce_scatter(MPI_IN_PLACE, sums.data(), blocks.counts.data(), MPI_INT, MPI_SUM, comm);
  expectEqual(sums, Numbers(wanted.begin(), wanted.begin() + blocks.countOf(rank)), "MPI_Reduce_scatter in place");
}

/// Nothing at all is moved, and where MPICH does not look whether two buffers are one, there is no memory for it.
void moveNothing(MPI_Comm comm) {
  const int ranks = ranksIn(comm);
  const Numbers none(static_cast<std::size_t>(ranks), 0);
  int from = 1, to = 2;
  MPI_Bcast(nullptr, 0, MPI_INT, ranks - 1, comm);
  MPI_Allreduce(&from, &to, 0, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Reduce_scatter(&from, &to, none.data(), MPI_INT, MPI_SUM, comm);
  MPI_Allgatherv(&from, 0, MPI_INT, &to, none.data(), none.data(), MPI_INT, comm);
  MPI_Gatherv(&from, 0, MPI_INT, &to, none.data(), none.data(), MPI_INT, 0, comm);
  MPI_Scatterv(&from, none.data(), none.data(), MPI_INT, &to, 0, MPI_INT, 0, comm);
  MPI_Alltoallv(&from, none.data(), none.data(), MPI_INT, &to, none.data(), none.data(), MPI_INT, comm);
  MPI_Scan(&from, &to, 0, MPI_INT, MPI_MAX, comm);
  MPI_Datatype empty = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  MPI_Bcast(nullptr, 5, empty, 0, comm);
  MPI_Allgather(&from, 7, empty, &to, 7, empty, comm);
  MPI_Type_free(&empty);
  if (from != 1 || to != 2) complain("something was moved");
}

/// A type whose numbers have places of their own in memory, from MPI_BOTTOM on.
void useAbsolutePlaces(MPI_Comm comm) {
  const int rank = rankIn(comm), root = ranksIn(comm) - 1;
  std::array<int, 3> first{rank, rank, rank};
  double second = rank;
  std::array<MPI_Aint, 2> places{};
  MPI_Get_address(first.data(), &places[0]);
  MPI_Get_address(&second, &places[1]);
  const std::array<int, 2> lengths{3, 1};
  const std::array<MPI_Datatype, 2> types{MPI_INT, MPI_DOUBLE};
  MPI_Datatype both = MPI_DATATYPE_NULL, one = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths.data(), places.data(), types.data(), &both);
  MPI_Type_create_hindexed(1, lengths.data(), places.data(), MPI_INT, &one);
  MPI_Type_commit(&both);
  MPI_Type_commit(&one);
  for (int round = 0; round < 3; ++round) {
    first.fill(rank);
    second = rank;
    MPI_Bcast(MPI_BOTTOM, 1, both, root, comm);
    if (first != std::array<int, 3>{root, root, root} || second != root) complain("MPI_Bcast from MPI_BOTTOM");
    first.fill(rank + round);
    MPI_Bcast(MPI_BOTTOM, 1, one, root, comm);
    if (first[2] != root + round) complain("MPI_Bcast of one block from MPI_BOTTOM");
  }
  MPI_Type_free(&both);
  MPI_Type_free(&one);
}

/// Columns of a matrix: elements of a type that begin inside one another.
void useColumns(MPI_Comm comm) {
  constexpr int rows = 5;
  const int rank = rankIn(comm), ranks = ranksIn(comm);
  MPI_Datatype spread = MPI_DATATYPE_NULL, column = MPI_DATATYPE_NULL, turned = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows, 1, ranks, MPI_INT, &spread);
  MPI_Type_create_resized(spread, 0, sizeof(int), &column);
  MPI_Type_create_resized(MPI_INT, -static_cast<MPI_Aint>(sizeof(int)), 2 * sizeof(int), &turned);
  MPI_Type_commit(&column);
  MPI_Type_commit(&turned);
  const auto size = static_cast<std::size_t>(rows * ranks);
  const Numbers own = blockOf(rank, 0, rows);
  Numbers matrix(size, -1), expected(size);
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < rows; ++i) expected[static_cast<std::size_t>(i * ranks + r)] = valueOf(r, 0, i);
  MPI_Allgather(own.data(), rows, MPI_INT, matrix.data(), 1, column, comm);
  expectEqual(matrix, expected, "MPI_Allgather to columns");

  const Numbers ones(static_cast<std::size_t>(ranks), 1);
  Numbers backwards(ones.size());
  for (int r = 0; r < ranks; ++r) backwards[static_cast<std::size_t>(r)] = ranks - 1 - r;
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < rows; ++i) expected[static_cast<std::size_t>(i * ranks + ranks - 1 - r)] = valueOf(r, 0, i);
  matrix.assign(size, -1);
  MPI_Allgatherv(own.data(), rows, MPI_INT, matrix.data(), ones.data(), backwards.data(), column, comm);
  expectEqual(matrix, expected, "MPI_Allgatherv to columns");

  // A transposition: my columns become rows of others.
  Numbers mine(size), theirs(size, -1), sent(ones.size(), 1), lengths(ones.size(), rows), places(ones.size());
  for (int r = 0; r < ranks; ++r) {
    places[static_cast<std::size_t>(r)] = rows * r;
    for (int i = 0; i < rows; ++i) {
      mine[static_cast<std::size_t>(i * ranks + r)] = valueOf(rank, r, i);
      expected[static_cast<std::size_t>(rows * r + i)] = valueOf(r, rank, i);
    }
  }
  MPI_Alltoall(mine.data(), 1, column, theirs.data(), rows, MPI_INT, comm);
  expectEqual(theirs, expected, "MPI_Alltoall of columns");
  theirs.assign(size, -1);
  std::iota(backwards.begin(), backwards.end(), 0);
  MPI_Alltoallv(mine.data(), sent.data(), backwards.data(), column, theirs.data(), lengths.data(), places.data(),
                MPI_INT, comm);
  expectEqual(theirs, expected, "MPI_Alltoallv of columns");

  // Elements that begin a number before the address, two apart.
  Numbers apart(2 * rows + 2, -1), wanted = apart;
  if (rank == 0)
    for (int i = 0; i < rows; ++i) apart[static_cast<std::size_t>(2 * i)] = i;
  for (int i = 0; i < rows; ++i) wanted[static_cast<std::size_t>(2 * i)] = i;
  MPI_Bcast(apart.data(), rows, turned, 0, comm);
  expectEqual(apart, wanted, "MPI_Bcast of a type that begins before its address");
  MPI_Type_free(&spread);
  MPI_Type_free(&column);
  MPI_Type_free(&turned);
}

/// The same nonblocking: what has to be copied into its place comes there when the request is completed.
void useColumnsLater(MPI_Comm comm, [[maybe_unused]] bool isTacc) {
  constexpr int rows = 20000;  // more than what is left to MPI
  const int rank = rankIn(comm), ranks = ranksIn(comm);
  MPI_Datatype spread = MPI_DATATYPE_NULL, column = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows, 1, ranks, MPI_INT, &spread);
  MPI_Type_create_resized(spread, 0, sizeof(int), &column);
  MPI_Type_commit(&column);
  const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(ranks);
  Numbers own(rows, rank), matrix(size, -1), turned(size, -1), sums(rows, -1);
  std::array<MPI_Request, 3> requests{};
  MPI_Barrier(comm);
  MPI_Iallgather(own.data(), rows, MPI_INT, matrix.data(), 1, column, comm, &requests[0]);
  MPI_Ialltoall(matrix.data(), 0, MPI_INT, turned.data(), 0, MPI_INT, comm, &requests[1]);
  MPI_Iallreduce(own.data(), sums.data(), rows, MPI_INT, MPI_SUM, comm, &requests[2]);
#if MPI_VERSION >= 4
  Numbers again(size, -1);
  MPI_Request persistent = MPI_REQUEST_NULL;
  const bool usesPersistent = isTacc && ranks > 1;  // MPICH 4.0 itself uses types that were freed
  if (usesPersistent)
    MPI_Allgather_init(own.data(), rows, MPI_INT, again.data(), 1, column, comm, MPI_INFO_NULL, &persistent);
#endif
  // A type may go while what uses it is under way, or is yet to be started.
  MPI_Type_free(&column);
  MPI_Type_free(&spread);
  MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t at = 0; at < size; ++at)
    if (matrix[at] != static_cast<int>(at) % ranks) complain("MPI_Iallgather to columns");
  if (sums != Numbers(rows, ranks * (ranks - 1) / 2)) complain("MPI_Iallreduce beside it");
#if MPI_VERSION >= 4
  for (int start = 0; usesPersistent && start < 2; ++start) {
    again.assign(size, -1);
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    if (again != matrix) complain("a persistent MPI_Allgather to columns");
  }
  if (usesPersistent) MPI_Request_free(&persistent);
#endif
}

void reduceInPlace(MPI_Comm comm, bool isTacc) {
  const int rank = rankIn(comm), ranks = ranksIn(comm), root = ranks - 1;
  std::array<int, 2> numbers{rank, 1};
  MPI_Scan(MPI_IN_PLACE, numbers.data(), 2, MPI_INT, MPI_SUM, comm);
  if (numbers != std::array<int, 2>{rank * (rank + 1) / 2, rank + 1}) complain("MPI_Scan in place");
  numbers = {rank, 1};
  MPI_Exscan(MPI_IN_PLACE, numbers.data(), 2, MPI_INT, MPI_SUM, comm);
  if (rank > 0 && numbers != std::array<int, 2>{rank * (rank - 1) / 2, rank}) complain("MPI_Exscan in place");
  if (!isTacc) return;
  numbers = {rank, 1};
  if (rank == root)
    MPI_Reduce(MPI_IN_PLACE, numbers.data(), 2, MPI_INT, MPI_SUM, root, comm);
  else
    MPI_Reduce(numbers.data(), nullptr, 2, MPI_INT, MPI_SUM, root, comm);
  if (rank == root && numbers != std::array<int, 2>{ranks * root / 2, ranks}) complain("MPI_Reduce in place");
}

}  // namespace

void useCornersOfData(bool isTacc) {
  for (int round = 0; round < 4; ++round) {
    // MPICH 4.0 forgets the places of blocks where there is one rank.
    if (ranksIn(MPI_COMM_WORLD) > 1) useScatteredBlocks(MPI_COMM_WORLD, round, isTacc);
    moveNothing(MPI_COMM_WORLD);
    useAbsolutePlaces(MPI_COMM_WORLD);
    useColumns(MPI_COMM_WORLD);
    useColumnsLater(MPI_COMM_WORLD, isTacc);
    reduceInPlace(MPI_COMM_WORLD, isTacc);
  }
  useColumns(MPI_COMM_SELF);
  moveNothing(MPI_COMM_SELF);
}

}  // namespace tacc::test
