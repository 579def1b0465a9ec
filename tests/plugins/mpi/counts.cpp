// Blocks, and places of blocks, that an int does not count in bytes: of one rank nearly all, of the others little. In
// MPI 4's form with large counts an int counts not even the elements.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cases.hpp"
#include "corners.hpp"
#include "pages.hpp"

namespace tacc::test {
namespace {

#if MPI_VERSION < 4
/// Elements of eight bytes.
struct Counted {
  using Count = int;
  using Place = int;
  static constexpr std::size_t elements = 1;                // in a number
  static constexpr std::size_t gap = std::size_t{1} << 27;  // numbers between blocks
  static MPI_Datatype type() { return MPI_INT64_T; }
  static constexpr auto bcast = MPI_Bcast;
  static constexpr auto allreduce = MPI_Allreduce;
  static constexpr auto reduceScatter = MPI_Reduce_scatter;
  static constexpr auto allgatherv = MPI_Allgatherv;
  static constexpr auto gatherv = MPI_Gatherv;
  static constexpr auto scatterv = MPI_Scatterv;
  static constexpr auto alltoallv = MPI_Alltoallv;
};

#else
struct Counted {
  using Count = MPI_Count;
  using Place = MPI_Aint;
  static constexpr std::size_t elements = 8;
  static constexpr std::size_t gap = std::size_t{3} << 27;
  static MPI_Datatype type() { return MPI_BYTE; }
  static constexpr auto bcast = MPI_Bcast_c;
  static constexpr auto allreduce = MPI_Allreduce_c;
  static constexpr auto reduceScatter = MPI_Reduce_scatter_c;
  static constexpr auto allgatherv = MPI_Allgatherv_c;
  static constexpr auto gatherv = MPI_Gatherv_c;
  static constexpr auto scatterv = MPI_Scatterv_c;
  static constexpr auto alltoallv = MPI_Alltoallv_c;
};
#endif

/// The last rank's block is so long that all are `all` numbers.
class LongBlocks {
 public:
  explicit LongBlocks(std::size_t all)
      : all_(all),
        pages_((all + static_cast<std::size_t>(ranks_) * Counted::gap) * sizeof(std::int64_t)),
        otherPages_((all + static_cast<std::size_t>(ranks_) * Counted::gap) * sizeof(std::int64_t)),
        buffer_(pages_.data()),
        other_(otherPages_.data()) {
    std::size_t others = 0, next = 0;
    for (int r = 0; r < ranks_; ++r) {
      numbers_.push_back(r == last_ ? all - others : shortBlock + static_cast<std::size_t>(r));
      others += numbers_.back();
      first_.push_back(next);
      next += numbers_.back() + Counted::gap;
      counts_.push_back(count(numbers_.back()));
      places_.push_back(place(first_.back()));
    }
  }

  void makeAll() {
    const MPI_Comm comm = MPI_COMM_WORLD;
    const MPI_Datatype type = Counted::type();
    const auto self = static_cast<std::size_t>(rank_), last = static_cast<std::size_t>(last_);
    if (rank_ == last_) fill(buffer_, all_, last_);
    Counted::bcast(buffer_, count(all_), type, last_, comm);
    expect(buffer_, all_, last_, 0, "MPI_Bcast");

    fill(buffer_, all_, rank_);
    Counted::allreduce(MPI_IN_PLACE, buffer_, count(all_), type, MPI_BXOR, comm);
    expectCombined(0, all_, "MPI_Allreduce");
    fill(buffer_, all_, rank_);
    Counted::reduceScatter(MPI_IN_PLACE, buffer_, counts_.data(), type, MPI_BXOR, comm);
    std::size_t before = 0;
    for (int r = 0; r < rank_; ++r) before += numbers_[static_cast<std::size_t>(r)];
    expectCombined(before, numbers_[self], "MPI_Reduce_scatter");

    fill(buffer_ + first_[self], numbers_[self], rank_);
    Counted::allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer_, counts_.data(), places_.data(), type, comm);
    expectBlocks("MPI_Allgatherv");
    forget();

    std::int64_t* const own = buffer_ + first_[self];
    fill(own, numbers_[self], rank_);
    if (rank_ == 0)
      Counted::gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer_, counts_.data(), places_.data(), type, 0, comm);
    else
      Counted::gatherv(own, counts_[self], type, nullptr, nullptr, nullptr, MPI_DATATYPE_NULL, 0, comm);
    if (rank_ == 0) expectBlocks("MPI_Gatherv");
    if (rank_ == 0)
      Counted::scatterv(buffer_, counts_.data(), places_.data(), type, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, comm);
    else
      Counted::scatterv(nullptr, nullptr, nullptr, MPI_DATATYPE_NULL, other_, counts_[self], type, 0, comm);
    if (rank_ > 0) expect(other_, numbers_[self], rank_, 0, "MPI_Scatterv");
    if (rank_ != 0) forget();

    // Each gives the last one what that holds of it in a gather, and all others a short block.
    std::vector<Count> sent, received;
    std::vector<Place> from, to;
    for (std::size_t r = 0; r < numbers_.size(); ++r) {
      const std::size_t given = r == last ? numbers_[last - self] : shortBlock;
      sent.push_back(count(given));
      received.push_back(count(rank_ == last_ ? numbers_[last - r] : shortBlock));
      from.push_back(place(first_[last - self]));
      to.push_back(place(rank_ == last_ ? first_[last - r] : r * shortBlock));
    }
    fill(buffer_ + first_[last - self], numbers_[last - self], last_ - rank_);
    Counted::alltoallv(buffer_, sent.data(), from.data(), type, other_, received.data(), to.data(), type, comm);
    for (int r = 0; r < ranks_; ++r) {
      const auto of = static_cast<std::size_t>(r);
      if (rank_ == last_)
        expect(other_ + first_[of], numbers_[of], r, 0, "MPI_Alltoallv");
      else
        expect(other_ + of * shortBlock, shortBlock, last_ - r, 0, "MPI_Alltoallv");
    }
    forget();
  }

 private:
  using Count = Counted::Count;
  using Place = Counted::Place;
  static constexpr std::size_t shortBlock = 1000;  // numbers

  static Count count(std::size_t numbers) { return static_cast<Count>(numbers * Counted::elements); }
  static Place place(std::size_t number) { return static_cast<Place>(number * Counted::elements); }
  void forget() {
    pages_.forget();
    otherPages_.forget();
  }
  void expectBlocks(const char* what) const {
    for (int r = 0; r < ranks_; ++r) {
      const auto at = static_cast<std::size_t>(r);
      expect(buffer_ + first_[at], numbers_[at], r, 0, what);
    }
  }
  void expectCombined(std::size_t first, std::size_t count, const char* what) const {
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t all = 0;
      for (int r = 0; r < ranks_; ++r) all ^= valueOf(r, first + i);
      if (buffer_[i] != all) complain(std::string(what) + ": other bits at place " + std::to_string(i));
    }
  }

  int rank_ = rankIn(MPI_COMM_WORLD), ranks_ = ranksIn(MPI_COMM_WORLD), last_ = ranks_ - 1;
  std::size_t all_;
  std::vector<std::size_t> numbers_, first_;  // of each rank's block
  std::vector<Count> counts_;
  std::vector<Place> places_;
  Pages pages_, otherPages_;
  std::int64_t *buffer_, *other_;
};

}  // namespace

void countBeyondInt(std::size_t bytes) { LongBlocks(bytes / sizeof(std::int64_t)).makeAll(); }

}  // namespace tacc::test
