// One-sided communication beside collectives: windows of every kind in epochs of every kind. All ranks know what all
// write, so each knows what its own memory must hold.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "beside.hpp"
#include "corners.hpp"

namespace tacc::test {
namespace {

constexpr int longCount = 3000;  // of a block that MPI does not send along with its header

/// Where things lie in each rank's memory, in numbers.
struct Places {
  int ranks;
  int put(int origin) const { return origin; }
  int exchanged(int origin) const { return ranks + origin; }
  int sum() const { return 2 * ranks; }
  int counter() const { return 2 * ranks + 1; }
  int read() const { return 2 * ranks + 2; }  // `longCount` of them, which nobody writes
  int blocks(int origin) const { return read() + longCount * (1 + origin); }
  int all() const { return blocks(ranks); }
};

struct Operation {
  enum class Kind { put, putBlock, accumulate, get, count, exchange, kinds } kind;
  int origin, target;
  std::int64_t value;
};

class DrawnWindow;

/// In epochs of groups a rank is beside all others. The operations of this rank, one after each call of the batch, the
/// rest behind them.
class Epoch : public Beside {
 public:
  enum class Kind { fence, group, lock, lockAll, kinds };
  Epoch(DrawnWindow& window, Draws& draws);
  void begin(std::vector<MPI_Request>& requests) override;
  void step() override;
  void finish() override;
  void end() override;

 private:
  void apply(const Operation& one);
  void make(const Operation& one);
  bool isPassive() const { return kind_ == Kind::lock || kind_ == Kind::lockAll; }

  DrawnWindow& window_;
  Kind kind_;
  bool isExclusive_;
  int flush_;
  std::vector<Operation> own_;  // of this rank
  std::size_t next_ = 0;
  std::vector<std::int64_t> before_;                       // what an exchange has to find
  std::vector<std::array<std::int64_t, 2>> single_;        // results, and what is sent
  std::vector<std::vector<std::int64_t>> read_, written_;  // of operations of blocks
};

class DrawnWindow : public Window {
 public:
  DrawnWindow(const Twin& twin, int kind) {
    if (!twin.isPart()) return;
    MPI_Comm_dup(twin.comm, &comm);
    rank = rankIn(comm);
    places.ranks = ranksIn(comm);
    const auto count = static_cast<std::size_t>(places.all());
    const auto bytes = static_cast<MPI_Aint>(count * sizeof(std::int64_t));
    constexpr int unit = sizeof(std::int64_t);
    starts_.assign(static_cast<std::size_t>(places.ranks), 0);
    switch (kind) {
      case 0:
        owned_.resize(count);
        at_ = owned_.data();
        MPI_Win_create(at_, bytes, unit, MPI_INFO_NULL, comm, &handle);
        break;
      case 1:
        MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, comm, static_cast<void*>(&at_), &handle);
        break;
      case 2:
        MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, comm, static_cast<void*>(&at_), &handle);
        break;
      default: {
        owned_.resize(count);
        at_ = owned_.data();
        unit_ = unit;
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &handle);
        MPI_Win_attach(handle, at_, bytes);
        MPI_Aint start = 0;
        MPI_Get_address(at_, &start);
        MPI_Allgather(&start, 1, MPI_AINT, starts_.data(), 1, MPI_AINT, comm);
      }
    }
    model_.assign(static_cast<std::size_t>(places.ranks), std::vector<std::int64_t>(count));
    for (int r = 0; r < places.ranks; ++r)
      for (int i = 0; i < longCount; ++i) cell(r, places.read() + i) = 1000000 * (r + 1) + i;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, handle);
    std::copy(model_[self()].begin(), model_[self()].end(), at_);
    MPI_Win_unlock(rank, handle);
    MPI_Barrier(comm);
  }
  ~DrawnWindow() override {
    if (comm == MPI_COMM_NULL) return;
    if (unit_ > 1) {
      MPI_Barrier(comm);
      MPI_Win_detach(handle, at_);
    }
    MPI_Win_free(&handle);
    MPI_Comm_free(&comm);
  }
  std::unique_ptr<Beside> epoch(Draws& draws) override { return std::make_unique<Epoch>(*this, draws); }

  bool isPart() const { return comm != MPI_COMM_NULL; }
  std::size_t self() const { return static_cast<std::size_t>(rank); }
  MPI_Aint place(int target, int number) const {
    return unit_ > 1 ? MPI_Aint_add(starts_[static_cast<std::size_t>(target)], static_cast<MPI_Aint>(unit_) * number)
                     : number;
  }
  /// What must be there after the epoch.
  std::int64_t& cell(int owner, int number) {
    return model_[static_cast<std::size_t>(owner)][static_cast<std::size_t>(number)];
  }
  void compare(const char* where) const {
    const std::vector<std::int64_t>& expected = model_[self()];
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (at_[i] != expected[i])
        complain(std::string("a window after ") + where + " holds " + std::to_string(at_[i]) + " and not " +
                 std::to_string(expected[i]) + " at " + std::to_string(i));
  }

  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Win handle = MPI_WIN_NULL;
  int rank = 0;
  Places places{1};

 private:
  int unit_ = 1;                  // bytes of a place, where places are addresses
  std::vector<MPI_Aint> starts_;  // of each rank's memory, where places are addresses
  std::int64_t* at_ = nullptr;
  std::vector<std::int64_t> owned_;
  std::vector<std::vector<std::int64_t>> model_;  // of each rank
};

Epoch::Epoch(DrawnWindow& window, Draws& draws)
    : window_(window),
      kind_(static_cast<Kind>(draws.upTo(static_cast<int>(Kind::kinds) - 1))),
      isExclusive_(draws.upTo(1) == 0),
      flush_(draws.upTo(3)) {
  // As many draws on ranks that are no part of it.
  constexpr int most = 8;
  std::vector<std::array<int, 4>> drawn;
  for (int origin = 0; origin < most; ++origin)
    for (int left = draws.upTo(4); left > 0; --left)
      drawn.push_back(
          {origin, draws.upTo(1000), draws.upTo(static_cast<int>(Operation::Kind::kinds) - 1), draws.upTo(1000)});
  if (!window_.isPart()) return;
  const int ranks = window_.places.ranks;
#ifdef OPEN_MPI
  const bool hasGroups = ranks > 1;
#else  // MPICH 4.0 itself waits for ever in MPI_Win_wait of some
  const bool hasGroups = false;
#endif
  if (!hasGroups && kind_ == Kind::group) kind_ = Kind::fence;
  std::vector<Operation> all;
  for (const auto& [origin, target, kind, value] : drawn) {
    const Operation one{static_cast<Operation::Kind>(kind), origin, target % ranks, value};
    const bool isTwice = std::ranges::any_of(all, [&](const Operation& other) {
      return other.kind == one.kind && other.origin == one.origin && other.target == one.target;
    });
    // Twice to one place in an epoch leaves anything.
    const bool isOnce = one.kind != Operation::Kind::accumulate && one.kind != Operation::Kind::count;
    const bool isOutside = kind_ == Kind::group && one.target == origin;
    if (origin < ranks && !(isTwice && isOnce) && !isOutside) all.push_back(one);
  }
  for (const Operation& one : all) {
    if (one.origin == window_.rank) {
      own_.push_back(one);
      before_.push_back(window_.cell(one.target, window_.places.exchanged(one.origin)));
    }
    apply(one);
  }
  single_.resize(own_.size());
  read_.resize(own_.size());
  written_.resize(own_.size());
}

void Epoch::apply(const Operation& one) {
  const Places& places = window_.places;
  switch (one.kind) {
    case Operation::Kind::put:
      window_.cell(one.target, places.put(one.origin)) = one.value;
      break;
    case Operation::Kind::putBlock:
      for (int i = 0; i < longCount; ++i) window_.cell(one.target, places.blocks(one.origin) + i) = one.value + i;
      break;
    case Operation::Kind::accumulate:
      window_.cell(one.target, places.sum()) += one.value;
      break;
    case Operation::Kind::count:
      window_.cell(one.target, places.counter()) += one.value;
      break;
    case Operation::Kind::exchange:
      window_.cell(one.target, places.exchanged(one.origin)) = one.value;
      break;
    default:
      break;
  }
}

void Epoch::make(const Operation& one) {
  const Places& places = window_.places;
  const MPI_Win window = window_.handle;
  std::array<std::int64_t, 2>& single = single_[next_];
  const auto at = [&](int number) { return window_.place(one.target, number); };
  single = {-1, one.value};
  switch (one.kind) {
    case Operation::Kind::put:
      MPI_Put(&single[1], 1, MPI_INT64_T, one.target, at(places.put(one.origin)), 1, MPI_INT64_T, window);
      break;
    case Operation::Kind::putBlock: {
      std::vector<std::int64_t>& block = written_[next_];
      for (int i = 0; i < longCount; ++i) block.push_back(one.value + i);
      MPI_Put(block.data(), longCount, MPI_INT64_T, one.target, at(places.blocks(one.origin)), longCount, MPI_INT64_T,
              window);
      break;
    }
    case Operation::Kind::accumulate:
      MPI_Accumulate(&single[1], 1, MPI_INT64_T, one.target, at(places.sum()), 1, MPI_INT64_T, MPI_SUM, window);
      break;
    case Operation::Kind::get:
      read_[next_].assign(longCount, -1);
      MPI_Get(read_[next_].data(), longCount, MPI_INT64_T, one.target, at(places.read()), longCount, MPI_INT64_T,
              window);
      break;
    case Operation::Kind::count:
      MPI_Fetch_and_op(&single[1], &single[0], MPI_INT64_T, one.target, at(places.counter()), MPI_SUM, window);
      break;
    default:
      MPI_Compare_and_swap(&single[1], &before_[next_], &single[0], MPI_INT64_T, one.target,
                           at(places.exchanged(one.origin)), window);
  }
}

void Epoch::begin(std::vector<MPI_Request>& /*requests*/) {
  if (!window_.isPart()) return;
  MPI_Group all = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  switch (kind_) {
    case Kind::fence:
      MPI_Win_fence(MPI_MODE_NOPRECEDE, window_.handle);
      break;
    case Kind::group:
      MPI_Win_get_group(window_.handle, &all);
      MPI_Group_excl(all, 1, &window_.rank, &group);
      MPI_Group_free(&all);
      MPI_Win_post(group, 0, window_.handle);
      MPI_Win_start(group, 0, window_.handle);
      MPI_Group_free(&group);
      break;
    case Kind::lockAll:
      MPI_Win_lock_all(0, window_.handle);
      break;
    default:
      break;
  }
}

void Epoch::step() {
  if (next_ == own_.size()) return;
  const Operation& one = own_[next_];
  if (kind_ == Kind::lock)
    MPI_Win_lock(isExclusive_ ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, one.target, 0, window_.handle);
  make(one);
  if (kind_ == Kind::lock) MPI_Win_unlock(one.target, window_.handle);
  if (kind_ == Kind::lockAll && flush_ == 0) MPI_Win_flush(one.target, window_.handle);
  if (kind_ == Kind::lockAll && flush_ == 1) MPI_Win_flush_local(one.target, window_.handle);
  ++next_;
}

void Epoch::finish() {
  if (!window_.isPart()) return;
  while (next_ < own_.size()) step();
  switch (kind_) {
    case Kind::fence:
      MPI_Win_fence(MPI_MODE_NOSUCCEED, window_.handle);
      break;
    case Kind::group:
      MPI_Win_complete(window_.handle);
      MPI_Win_wait(window_.handle);
      break;
    case Kind::lockAll:
      MPI_Win_flush_all(window_.handle);
      break;
    default:
      break;
  }
}

void Epoch::end() {
  constexpr const char* names[] = {"a fence", "MPI_Win_wait", "MPI_Win_unlock", "MPI_Win_flush_all"};
  if (!window_.isPart()) return;
  if (isPassive()) MPI_Barrier(window_.comm);
  if (kind_ == Kind::lock) MPI_Win_lock(MPI_LOCK_SHARED, window_.rank, 0, window_.handle);
  if (isPassive()) MPI_Win_sync(window_.handle);
  window_.compare(names[static_cast<int>(kind_)]);
  if (kind_ == Kind::lock) MPI_Win_unlock(window_.rank, window_.handle);
  MPI_Barrier(window_.comm);  // the next epoch changes it
  if (kind_ == Kind::lockAll) MPI_Win_unlock_all(window_.handle);
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const Operation& one = own_[i];
    if (one.kind == Operation::Kind::get)
      for (int k = 0; k < longCount; ++k)
        if (read_[i][static_cast<std::size_t>(k)] != window_.cell(one.target, window_.places.read() + k))
          complain("MPI_Get finds other numbers");
    if (one.kind == Operation::Kind::exchange && single_[i][0] != before_[i])
      complain("MPI_Compare_and_swap finds another number");
    if (one.kind == Operation::Kind::count &&
        (single_[i][0] < 0 || single_[i][0] + one.value > window_.cell(one.target, window_.places.counter())))
      complain("MPI_Fetch_and_op finds " + std::to_string(single_[i][0]));
  }
}

}  // namespace

std::unique_ptr<Window> drawWindow(const Twin& twin, Draws& draws) {
  return std::make_unique<DrawnWindow>(twin, draws.upTo(3));
}

}  // namespace tacc::test
