#include "transports/shm/page_pipes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/stopwatch.hpp"
#include "core/uncancelled.hpp"
#include "transports/shm/cpu_relax.hpp"

namespace tacc {
namespace {

// A user who is not root may have pipes of 16,384 pages in all (fs.pipe-user-pages-soft), and all of a user's programs
// share that: the pipes of a communicator take a quarter at most, and those of a process not more than two such.
constexpr int mostSlots = 256;        // pages in flight of a pipe: 1 MiB, all that a user may have by default
constexpr int slotsOfRanks = 4096;    // of all pipes of a communicator
constexpr int slotsOfProcess = 1024;  // of all that a process writes
constexpr int pageSlotBytes = 4096;
constexpr int leastSlots = 16;  // what a pipe has when it is made

/// Who reads has the pipe for as long, and who gives waits.
constexpr std::size_t mostReadAtOnce = std::size_t{256} << 10;

std::atomic<int>& slotsTaken() noexcept {
  static std::atomic<int> taken{0};
  return taken;
}

int slotsOf(int ranks) noexcept {
  int slots = mostSlots;
  while (slots > leastSlots && slots * ranks * (ranks - 1) > slotsOfRanks) slots /= 2;
  return slots;
}

std::string pathOf(int process, int fd) { return fmt::format("/proc/{}/fd/{}", process, fd); }

/// The pipe that is behind `path`, if it is one and has that identity.
FileDescriptor openPipe(const std::string& path, int flags, const FileId& id) {
  struct stat status {};
  // Opening what is no pipe may do something.
  if (::stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode) || FileId{status.st_dev, status.st_ino} != id)
    return {};
  FileDescriptor fd = ownDescriptor([&] { return ::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC); });
  if (fd.valid() && identify(fd.get()) != id) return {};
  return fd;
}

/// A new pipe, by a descriptor that is both of its ends: while it is there nobody who writes gets a SIGPIPE.
FileDescriptor makePipe(int slots) {
  FileDescriptor readEnd, writeEnd;
  {
    const std::lock_guard lock(descriptorMutex());
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return {};
    readEnd.reset(ends[0]);
    writeEnd.reset(ends[1]);
  }
  if (!readEnd.valid() || !writeEnd.valid()) return {};
  if (slots > leastSlots) (void)::fcntl(writeEnd.get(), F_SETPIPE_SZ, slots * pageSlotBytes);
  return openPipe(pathOf(::getpid(), writeEnd.get()), O_RDWR, identify(writeEnd.get()));
}

}  // namespace

/// Of a wait for `owner`: spins, then yields, then sleeps until one of the pipes can go on.
class PagePipes::Patience {
 public:
  /// `reads`: the wait is for what `owner` gives.
  Patience(PagePipes& pipes, int owner, bool reads) : pipes_(pipes), owner_(owner), reads_(reads) {}

  /// `isDone`: whether what is waited for has come.
  template <class IsDone>
  void pause(const IsDone& isDone) {
    const WaitPolicy& policy = pipes_.waiter_.policy();
    if (++turns_ < policy.spins && turns_ % turnsPerLook != 0) return relaxCpu();
    pipes_.waiter_.lookAt(owner_, watch_.seconds(), isDone);
    if (turns_ < policy.spins) return;
    if (turns_ < policy.spins + policy.yields)
      (void)::sched_yield();
    else
      sleep();
  }
  void begin() noexcept {
    turns_ = 0;
    watch_ = Stopwatch();
  }

 private:
  static constexpr int turnsPerLook = 64;
  static constexpr int sliceMilliseconds = 1;

  void sleep() {
    std::vector<pollfd>& ends = ends_;
    ends.clear();
    if (reads_) ends.push_back({pipes_.incoming_[at(owner_)].fd.get(), POLLIN, 0});
    for (std::size_t peer = 0; peer < pipes_.queues_.size(); ++peer)
      if (!pipes_.queues_[peer].given.empty()) ends.push_back({pipes_.outgoing_[peer].fd.get(), POLLOUT, 0});
    (void)::poll(ends.data(), ends.size(), sliceMilliseconds);
  }

  PagePipes& pipes_;
  int owner_;
  bool reads_;
  int turns_ = 0;
  Stopwatch watch_;
  std::vector<pollfd> ends_;
};

PagePipes::PagePipes(const NodeSegment& segment, int rank, Waiter& waiter, std::vector<int> processes)
    : segment_(segment), rank_(rank), waiter_(waiter), processes_(std::move(processes)) {}

PagePipes::State PagePipes::state() noexcept {
  if (state_ == State::none) return state_;
  const auto stands = [](const End& end) { return !end.fd.valid() || end.stands(); };
  if (std::ranges::all_of(outgoing_, stands) && std::ranges::all_of(incoming_, stands)) return state_;
  close();
  return state_;
}

void PagePipes::advance(State all) noexcept {
  if (isRefused_ || all < state_ || state_ == State::open) return;
  const Uncancelled whole;
  bool goesOn = false;
  try {
    goesOn = state_ == State::none ? offer() : open();
  } catch (...) {  // no memory for the path of a file
    goesOn = false;
  }
  if (!goesOn) return close();
  state_ = state_ == State::none ? State::offered : State::open;
}

bool PagePipes::offer() noexcept {
  const int ranks = segment_.geometry().ranks;
  if (ranks > mostPiped) return false;
  const int each = slotsOf(ranks), wanted = each * (ranks - 1);
  if (slotsTaken().fetch_add(wanted) + wanted > slotsOfProcess) {
    slotsTaken().fetch_sub(wanted);
    return false;
  }
  slots_ = wanted;
  outgoing_.resize(at(ranks));
  incoming_.resize(at(ranks));
  queues_.resize(at(ranks));
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank_) continue;
    End& end = outgoing_[at(peer)];
    end.fd = makePipe(each);
    if (!end.fd.valid()) return false;
    end.id = identify(end.fd.get());
    PipeOffer& shown = segment_.pipeOffer(rank_, peer);
    shown = {static_cast<std::uint32_t>(end.fd.get()), end.id.first, end.id.second};
  }
  return true;
}

bool PagePipes::open() noexcept {
  for (int peer = 0; peer < segment_.geometry().ranks; ++peer) {
    if (peer == rank_) continue;
    const PipeOffer offer = segment_.pipeOffer(peer, rank_);
    End& end = incoming_[at(peer)];
    end.id = {static_cast<dev_t>(offer.device), static_cast<ino_t>(offer.inode)};
    end.fd = openPipe(pathOf(processes_[at(peer)], static_cast<int>(offer.descriptor)), O_RDONLY, end.id);
    if (!end.fd.valid()) return false;
  }
  return true;
}

void PagePipes::close() noexcept {
  const Uncancelled whole;
  isRefused_ = true;
  state_ = State::none;
  for (std::vector<End>* ends : {&outgoing_, &incoming_}) {
    for (End& end : *ends) giveUpReplaced(end.fd, end.id);
    ends->clear();
  }
  queues_.clear();
  feeding_ = 0;
  slotsTaken().fetch_sub(std::exchange(slots_, 0));
}

void PagePipes::give(int rank, const void* from, std::size_t bytes) {
  const Uncancelled whole;
  Queue& queue = queues_[at(rank)];
  if (queue.given.empty()) ++feeding_;
  queue.given.push_back({static_cast<const std::byte*>(from), bytes});
  (void)feed(rank);
}

bool PagePipes::feed(int rank) {
  Queue& queue = queues_[at(rank)];
  bool hasGiven = false;
  while (queue.first < queue.given.size()) {
    Given& given = queue.given[queue.first];
    const iovec memory{const_cast<std::byte*>(given.from), given.bytes};
    const ssize_t count = ::vmsplice(outgoing_[at(rank)].fd.get(), &memory, 1, SPLICE_F_NONBLOCK);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return hasGiven;
    if (count <= 0)
      failErrno(
          "cannot give rank {} the {} bytes at {} of rank {} through a pipe: what no other process may read is "
          "not given; TACC_CMA=off does without",
          waiter_.nameOf(rank), given.bytes, static_cast<const void*>(given.from), waiter_.nameOf(rank_));
    hasGiven = true;
    given.from += count;
    given.bytes -= static_cast<std::size_t>(count);
    if (given.bytes == 0) ++queue.first;
  }
  queue.given.clear();
  queue.first = 0;
  --feeding_;
  return hasGiven;
}

bool PagePipes::feed() {
  bool hasGiven = false;
  for (std::size_t peer = 0; feeding_ > 0 && peer < queues_.size(); ++peer)
    if (!queues_[peer].given.empty()) hasGiven = feed(static_cast<int>(peer)) || hasGiven;
  return hasGiven;
}

void PagePipes::read(int rank, void* to, std::size_t bytes) {
  const Uncancelled whole;
  auto* next = static_cast<std::byte*>(to);
  const int fd = incoming_[at(rank)].fd.get();
  Patience patience(*this, rank, true);
  while (bytes > 0) {
    const ssize_t count = ::read(fd, next, std::min(bytes, mostReadAtOnce));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      if (!feed())
        patience.pause([fd] {
          pollfd end{fd, POLLIN, 0};
          return ::poll(&end, 1, 0) == 1 && (end.revents & POLLIN) != 0;
        });
      continue;
    }
    if (count < 0)
      failErrno("cannot read {} bytes of rank {} through a pipe to {} of rank {}", bytes, waiter_.nameOf(rank),
                static_cast<const void*>(next), waiter_.nameOf(rank_));
    if (count == 0) {
      // A rank may have left because another one failed: then that is what happened.
      waiter_.checkErrors();
      fail(taccRemoteError, "rank {} (process {}) has died; rank {} was reading its memory", waiter_.nameOf(rank),
           processes_[at(rank)], waiter_.nameOf(rank_));
    }
    next += count;
    bytes -= static_cast<std::size_t>(count);
    (void)feed();
    patience.begin();
  }
}

void PagePipes::wait(std::atomic<std::uint32_t>& word, std::uint32_t target, int owner) {
  if (feeding_ > 0) {
    const Uncancelled whole;
    const auto isReached = [&] { return Waiter::sees(word, target); };
    Patience patience(*this, owner, false);
    while (feeding_ > 0 && !isReached())
      if (feed())
        patience.begin();
      else
        patience.pause(isReached);
  }
  waiter_.wait(word, target, owner);
}

}  // namespace tacc
