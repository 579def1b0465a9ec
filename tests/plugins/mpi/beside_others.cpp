// Collectives of neighbours, messages in parts and files beside the collectives that are taken over.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "beside.hpp"
#include "corners.hpp"

namespace tacc::test {
namespace {

/// On a ring, blocking after each call, and one that is under way all the time.
class Neighbours : public Beside {
 public:
  explicit Neighbours(Draws& draws) : count_(draws.upTo(3) == 0 ? draws.upTo(20000) : draws.upTo(20)) {
    const int ranks = ranksIn(MPI_COMM_WORLD), isRing = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &isRing, 0, &ring_);
    rank_ = rankIn(ring_);
    MPI_Cart_shift(ring_, 0, 1, &previous_, &next_);
  }
  ~Neighbours() override { MPI_Comm_free(&ring_); }
  void begin(std::vector<MPI_Request>& requests) override {
    sent_.assign(static_cast<std::size_t>(count_), rank_);
    received_.assign(2 * sent_.size(), -1);
    requests.push_back(MPI_REQUEST_NULL);
    MPI_Ineighbor_allgather(sent_.data(), count_, MPI_INT, received_.data(), count_, MPI_INT, ring_, &requests.back());
  }
  void step() override {
    const std::array<int, 2> given{10 * rank_, 10 * rank_ + 1};
    std::array<int, 2> found{-1, -1};
    MPI_Neighbor_alltoall(given.data(), 1, MPI_INT, found.data(), 1, MPI_INT, ring_);
    // Of two that are neighbours on both sides nobody tells which block is which.
    if (ranksIn(ring_) > 2 && found != std::array<int, 2>{10 * previous_ + 1, 10 * next_})
      complain("MPI_Neighbor_alltoall gives other numbers");
    int first = rank_;
    MPI_Bcast(&first, 1, MPI_INT, 0, ring_);
    if (first != 0) complain("MPI_Bcast among neighbours gives another number");
  }
  void end() override {
    const auto half = received_.begin() + count_;
    if (std::any_of(received_.begin(), half, [&](int number) { return number != previous_; }) ||
        std::any_of(half, received_.end(), [&](int number) { return number != next_; }))
      complain("MPI_Ineighbor_allgather gives other numbers");
  }

 private:
  MPI_Comm ring_ = MPI_COMM_NULL;
  int rank_ = 0, previous_ = 0, next_ = 0, count_;
  std::vector<int> sent_, received_;
};

#if MPI_VERSION >= 4
/// A message to the next rank, a part after each call.
class Parts : public Beside {
 public:
  explicit Parts(Draws& draws)
      : count_(draws.upTo(1) == 0 ? 5000 : 10), sent_(static_cast<std::size_t>(parts * count_)) {
    const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
    previous_ = (rank + ranks - 1) % ranks;
    received_.assign(sent_.size(), -1);
    MPI_Psend_init(sent_.data(), parts, count_, MPI_INT, (rank + 1) % ranks, 6, MPI_COMM_WORLD, MPI_INFO_NULL,
                   requests_.data());
    MPI_Precv_init(received_.data(), parts, count_, MPI_INT, previous_, 6, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &requests_[1]);
  }
  ~Parts() override {
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
  }
  /// Not among the others: MPICH 4.0 itself fails in MPI_Testall of them.
  void begin(std::vector<MPI_Request>& /*requests*/) override { MPI_Startall(2, requests_.data()); }
  void step() override {
    if (ready_ == parts) return;
    const auto first = sent_.begin() + static_cast<std::ptrdiff_t>(ready_) * count_;
    std::fill(first, first + count_, 100 * rankIn(MPI_COMM_WORLD) + ready_);
    MPI_Pready(ready_++, requests_[0]);
  }
  void finish() override {
    while (ready_ < parts) step();
    for (MPI_Request& request : requests_) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  void end() override {
    for (std::size_t i = 0; i < received_.size(); ++i)
      if (received_[i] != 100 * previous_ + static_cast<int>(i) / count_)
        complain("a message in parts has other numbers");
  }

 private:
  static constexpr int parts = 4;
  int count_, previous_ = 0, ready_ = 0;
  std::vector<int> sent_, received_;
  std::array<MPI_Request, 2> requests_{};
};
#endif

/// Written and read by all, in turns and at once.
class File : public Beside {
 public:
  File() {
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "/tmp/tacc-beside-%d", static_cast<int>(getpid()));
    MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (MPI_File_open(MPI_COMM_WORLD, name.data(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                      MPI_INFO_NULL, &file_) != MPI_SUCCESS)
      complain("MPI_File_open fails");
  }
  ~File() override { MPI_File_close(&file_); }
  void begin(std::vector<MPI_Request>& /*requests*/) override {
    written_.assign(count, rank_ + 1);
    MPI_File_iwrite_at(file_, offset(0, rank_), written_.data(), count, MPI_INT, &request_);
  }
  void step() override {
    if (++rounds_ > 1) return;
    const std::vector<int> mine(count, 100 * rounds_ + rank_);
    std::vector<int> found(count, -1);
    MPI_File_write_at_all(file_, offset(rounds_, rank_), mine.data(), count, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file_);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file_);
    MPI_File_read_at_all(file_, offset(rounds_, next_), found.data(), count, MPI_INT, MPI_STATUS_IGNORE);
    if (found != std::vector<int>(count, 100 * rounds_ + next_)) complain("a file has other numbers");
  }
  /// By itself: MPICH 4.0 ends in MPI_Testall of such a request among others.
  void finish() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }
  void end() override {
    MPI_File_sync(file_);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file_);
    std::vector<int> found(count, -1);
    MPI_File_read_at(file_, offset(0, next_), found.data(), count, MPI_INT, MPI_STATUS_IGNORE);
    if (found != std::vector<int>(count, next_ + 1)) complain("MPI_File_iwrite_at writes other numbers");
  }

 private:
  static constexpr int count = 700;
  MPI_Offset offset(int round, int rank) const {
    return (static_cast<MPI_Offset>(round) * ranks_ + rank) * count * static_cast<MPI_Offset>(sizeof(int));
  }
  int rank_ = rankIn(MPI_COMM_WORLD), ranks_ = ranksIn(MPI_COMM_WORLD), next_ = (rank_ + 1) % ranks_, rounds_ = 0;
  MPI_File file_ = MPI_FILE_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::vector<int> written_;
};

}  // namespace

std::unique_ptr<Beside> drawBeside(Draws& draws) {
  switch (draws.upTo(4)) {
    case 0:
      return std::make_unique<File>();
#if MPI_VERSION >= 4
    case 1:
    case 2:
      return std::make_unique<Parts>(draws);
#endif
    default:
      return std::make_unique<Neighbours>(draws);
  }
}

}  // namespace tacc::test
