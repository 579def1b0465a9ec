// Calls of more bytes than an int counts, and blocks that lie further apart than that: what each place must hold is
// known, so that no second buffer is needed.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cases.hpp"
#include "corners.hpp"
#include "pages.hpp"

namespace tacc::test {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// An element of the calls: so many numbers.
struct Element {
  MPI_Datatype type;
  std::size_t numbers;
  const char* name;
};

MPI_Datatype contiguous(std::size_t count, MPI_Datatype type) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(count), type, &made);
  MPI_Type_commit(&made);
  return made;
}

/// All calls on one buffer of `all` numbers: with a block of `each` for every rank, in place where there is a choice.
class LargeCalls {
 public:
  LargeCalls(std::size_t bytes, Element element)
      : element_(element),
        all_(bytes / sizeof(std::int64_t) / element.numbers / static_cast<std::size_t>(ranks_) *
             static_cast<std::size_t>(ranks_) * element.numbers),
        each_(all_ / static_cast<std::size_t>(ranks_)),
        pages_(all_ * sizeof(std::int64_t)),
        buffer_(pages_.data()) {}

  /// `isReduced`: also what a derived type cannot be in.
  void makeAll(bool isReduced, bool isTacc) {
    broadcast([&](int count, MPI_Request*) { MPI_Bcast(buffer_, count, element_.type, last_, MPI_COMM_WORLD); });
    if (isTacc)  // in MPICH 4.0 itself it fails
      broadcast([&](int count, MPI_Request* request) {
        MPI_Ibcast(buffer_, count, element_.type, last_, MPI_COMM_WORLD, request);
      });
    allGather();
    gatherAndScatter();
    if (isTacc) allToAll();
    if (isReduced) reduce(isTacc);
  }

 private:
  int count(std::size_t numbers) const { return static_cast<int>(numbers / element_.numbers); }
  std::int64_t* block(int rank) { return buffer_ + each_ * static_cast<std::size_t>(rank); }
  std::string named(const char* name) const { return std::string(name) + " of " + element_.name; }

  void broadcast(const std::function<void(int, MPI_Request*)>& call) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank_ == last_)
      fill(buffer_, all_, last_);
    else
      fill(buffer_, all_, ranks_ + 1);
    call(count(all_), &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(buffer_, all_, last_, 0, named("MPI_Bcast"));
  }

  void allGather() {
    fill(buffer_, all_, ranks_ + 1);
    fill(block(rank_), each_, rank_);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer_, count(each_), element_.type, MPI_COMM_WORLD);
    for (int r = 0; r < ranks_; ++r) expect(block(r), each_, r, 0, named("MPI_Allgather"));
  }

  void gatherAndScatter() {
    fill(block(rank_), each_, rank_);
    const int blockCount = count(each_);
    if (rank_ == last_)
      MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer_, blockCount, element_.type, last_, MPI_COMM_WORLD);
    else
      MPI_Gather(block(rank_), blockCount, element_.type, nullptr, 0, MPI_DATATYPE_NULL, last_, MPI_COMM_WORLD);
    for (int r = 0; rank_ == last_ && r < ranks_; ++r) expect(block(r), each_, r, 0, named("MPI_Gather"));
    if (rank_ == last_)
      MPI_Scatter(buffer_, blockCount, element_.type, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, last_, MPI_COMM_WORLD);
    else
      MPI_Scatter(nullptr, 0, MPI_DATATYPE_NULL, block(0), blockCount, element_.type, last_, MPI_COMM_WORLD);
    expect(rank_ == last_ ? block(rank_) : block(0), each_, rank_, 0, named("MPI_Scatter"));
  }

  void allToAll() {
    for (int r = 0; r < ranks_; ++r) fill(block(r), each_, rank_, static_cast<std::size_t>(r));
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer_, count(each_), element_.type, MPI_COMM_WORLD);
    for (int r = 0; r < ranks_; ++r) expect(block(r), each_, r, static_cast<std::size_t>(rank_), named("MPI_Alltoall"));
  }

  /// Sums of all ranks are what a rank would have with the sum of their factors.
  void reduce(bool isTacc) {
    const int sum = ranks_ * (ranks_ + 1) / 2 - 1, before = (rank_ + 1) * (rank_ + 2) / 2 - 1;
    fill(buffer_, all_, rank_);
    MPI_Allreduce(MPI_IN_PLACE, buffer_, count(all_), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(buffer_, all_, sum, 0, "MPI_Allreduce");
    MPI_Request request = MPI_REQUEST_NULL;
    fill(buffer_, all_, rank_);
    MPI_Iallreduce(MPI_IN_PLACE, buffer_, count(all_), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(buffer_, all_, sum, 0, "MPI_Iallreduce");
    fill(buffer_, all_, rank_);
    MPI_Scan(MPI_IN_PLACE, buffer_, count(all_), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(buffer_, all_, before, 0, "MPI_Scan");
    if (!isTacc) return;
    fill(buffer_, all_, rank_);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, buffer_, count(each_), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(buffer_, each_, sum, each_ * static_cast<std::size_t>(rank_), "MPI_Reduce_scatter_block");
    fill(buffer_, all_, rank_);
    if (rank_ == last_)
      MPI_Reduce(MPI_IN_PLACE, buffer_, count(all_), MPI_INT64_T, MPI_SUM, last_, MPI_COMM_WORLD);
    else
      MPI_Reduce(buffer_, nullptr, count(all_), MPI_INT64_T, MPI_SUM, last_, MPI_COMM_WORLD);
    if (rank_ == last_) expect(buffer_, all_, sum, 0, "MPI_Reduce");
  }

  int rank_ = rankIn(MPI_COMM_WORLD), ranks_ = ranksIn(MPI_COMM_WORLD), last_ = ranks_ - 1;
  Element element_;
  std::size_t all_, each_;  // numbers
  Pages pages_;
  std::int64_t* buffer_;
};

/// Short blocks whose places are `step` numbers apart, backwards and forwards.
void useFarPlaces(std::ptrdiff_t step) {
  constexpr int each = 5000;
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD), root = ranks - 1;
  const auto size = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(step) + each;
  Pages pages(size * sizeof(std::int64_t)), otherPages(size * sizeof(std::int64_t));
  std::int64_t *const far = pages.data(), *const other = otherPages.data();
  std::vector<int> counts, places;
  for (int r = 0; r < ranks; ++r) {
    counts.push_back(each - r);
    places.push_back(static_cast<int>(step) * (ranks - 1 - r));
  }
  const auto at = [&](std::int64_t* buffer, int r) { return buffer + places[static_cast<std::size_t>(r)]; };
  const int own = each - rank;
  std::vector<std::int64_t> mine(each);
  const auto expectAll = [&](const char* what) {
    for (int r = 0; r < ranks; ++r) expect(at(far, r), static_cast<std::size_t>(each - r), r, 0, what);
  };
  fill(mine.data(), mine.size(), rank);
  MPI_Allgatherv(mine.data(), own, MPI_INT64_T, far, counts.data(), places.data(), MPI_INT64_T, MPI_COMM_WORLD);
  expectAll("MPI_Allgatherv of far places");
  MPI_Gatherv(mine.data(), own, MPI_INT64_T, far, counts.data(), places.data(), MPI_INT64_T, root, MPI_COMM_WORLD);
  if (rank == root) expectAll("MPI_Gatherv of far places");
  std::vector<std::int64_t> received(each);
  MPI_Scatterv(far, counts.data(), places.data(), MPI_INT64_T, received.data(), own, MPI_INT64_T, root, MPI_COMM_WORLD);
  expect(received.data(), static_cast<std::size_t>(own), rank, 0, "MPI_Scatterv of far places");
  const std::vector<int> sent(counts.size(), own);
  for (int r = 0; r < ranks; ++r) fill(at(other, r), static_cast<std::size_t>(own), rank);
  MPI_Alltoallv(other, sent.data(), places.data(), MPI_INT64_T, far, counts.data(), places.data(), MPI_INT64_T,
                MPI_COMM_WORLD);
  expectAll("MPI_Alltoallv of far places");
  // The same by a type whose elements are far apart.
  MPI_Datatype block = contiguous(each, MPI_INT64_T), apart = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(block, 0, step * static_cast<MPI_Aint>(sizeof(std::int64_t)), &apart);
  MPI_Type_commit(&apart);
  MPI_Allgather(mine.data(), each, MPI_INT64_T, far, 1, apart, MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r) expect(far + step * r, each, r, 0, "MPI_Allgather of far elements");
  MPI_Bcast(far, ranks, apart, root, MPI_COMM_WORLD);
  MPI_Type_free(&apart);
  MPI_Type_free(&block);
}

}  // namespace

void reachFar(bool isTacc) {
  useFarPlaces(10000);
  if (!isTacc) return;  // MPICH 4.0 itself loses places that far
  for (const std::ptrdiff_t step : {300, 600}) useFarPlaces(step << 20);
}

void moveMuch(std::size_t bytes, bool isTacc) {
  MPI_Datatype chunk = contiguous(mib / sizeof(std::int64_t), MPI_INT64_T);
  LargeCalls(bytes, {MPI_INT64_T, 1, "numbers"}).makeAll(true, isTacc);
  LargeCalls(bytes, {chunk, mib / sizeof(std::int64_t), "elements of a MiB"}).makeAll(false, isTacc);
  // One element for each rank, in two parts, as programs make them for more than an int counts.
  const std::size_t chunks = bytes / mib / static_cast<std::size_t>(ranksIn(MPI_COMM_WORLD));
  MPI_Datatype most = contiguous(chunks - 1, chunk), whole = MPI_DATATYPE_NULL;
  const std::array<int, 2> lengths{1, 1};
  const std::array<MPI_Aint, 2> places{0, static_cast<MPI_Aint>((chunks - 1) * mib)};
  const std::array<MPI_Datatype, 2> parts{most, chunk};
  MPI_Type_create_struct(2, lengths.data(), places.data(), parts.data(), &whole);
  MPI_Type_commit(&whole);
  LargeCalls(bytes, {whole, chunks * mib / sizeof(std::int64_t), "one element"}).makeAll(false, isTacc);
  for (MPI_Datatype* type : {&whole, &most, &chunk}) MPI_Type_free(type);
}

}  // namespace tacc::test
