#include "transports/shm/page_pipes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/index.hpp"
#include "core/stopwatch.hpp"
#include "core/uncancelled.hpp"
#include "core/undying.hpp"
#include "transports/shm/cpu_relax.hpp"

namespace tacc {
namespace {

// A user who is not root may have pipes of 16,384 pages in all (fs.pipe-user-pages-soft), of all programs; who has more
// gets pipes of two pages. So ranks on every core of a host take a quarter at most.
constexpr int slotsOfHost = 4096;  // pages in flight in all pipes
constexpr int mostSlotsOfProcess = 1024;
constexpr int mostSlots = 256;  // of a pipe: 1 MiB, all that a user may have by default
constexpr int leastSlots = 16;  // what a pipe has when it is made
constexpr int pageSlotBytes = 4096;

/// Who reads has the pipe for as long, and who gives waits.
constexpr std::size_t mostReadAtOnce = std::size_t{256} << 10;

/// What the pipes of this process may still hold. A child made by fork() has none of its parent's.
class SlotBudget {
 public:
  /// Slots of each of so many pipes; 0: there is no room for them.
  int take(int pipes) noexcept {
    const std::lock_guard lock(mutex_);
    if (const std::uint32_t process = processGeneration(); process != process_) {
      process_ = process;
      taken_ = 0;
    }
    static const auto cores = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    const int left = std::min(mostSlotsOfProcess, slotsOfHost / cores) - taken_;
    int slots = mostSlots;
    while (slots >= leastSlots && slots * pipes > left) slots /= 2;
    if (slots < leastSlots) return 0;
    taken_ += slots * pipes;
    return slots;
  }
  void giveBack(int slots) noexcept {
    const std::lock_guard lock(mutex_);
    if (processGeneration() == process_) taken_ -= slots;
  }

 private:
  ForkMutex mutex_;
  std::uint32_t process_ = processGeneration();
  int taken_ = 0;
};

SlotBudget& slotBudget() noexcept {
  static Undying<SlotBudget> only;
  return only.get();
}

std::string pathOf(int process, int fd) { return fmt::format("/proc/{}/fd/{}", process, fd); }
std::string pathOf(int fd) { return fmt::format("/proc/thread-self/fd/{}", fd); }

/// Whether the kernel lets pages through it: some sandboxes have process_vm_readv alone.
bool carriesPages(int fd) noexcept {
  char given = 'g', read = 0;
  const iovec memory{&given, 1};
  return ::vmsplice(fd, &memory, 1, SPLICE_F_NONBLOCK) == 1 && ::read(fd, &read, 1) == 1 && read == given;
}

const char* adviceFor(int code) noexcept {
  return code == EFAULT
             ? "; nothing is mapped there, or memory that only its own process may read: TACC_CMA=off does without"
             : "; TACC_CMA=off does without";
}

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

/// A new pipe with so many slots, by a descriptor that is both of its ends: while it is there nobody who writes gets a
/// SIGPIPE. None where it would be smaller, or no pages go through.
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
  if (::fcntl(writeEnd.get(), F_GETPIPE_SZ) < slots * pageSlotBytes) return {};
  FileDescriptor both = openPipe(pathOf(writeEnd.get()), O_RDWR, identify(writeEnd.get()));
  return both.valid() && carriesPages(both.get()) ? std::move(both) : FileDescriptor();
}

}  // namespace

/// Of a wait for `owner`: spins, then yields, then sleeps until one of the pipes can go on, or a moment is over. A
/// moment between two turns that is longer than any of these is not counted: the job was stopped.
class PagePipes::Patience {
 public:
  /// `reads`: the wait is for what `owner` gives.
  Patience(PagePipes& pipes, int owner, bool reads) : pipes_(pipes), owner_(owner), reads_(reads) {}

  /// `isDone`: whether what is waited for has come.
  template <class IsDone>
  void pause(const IsDone& isDone) {
    const WaitPolicy& policy = pipes_.waiter_.policy();
    const bool spins = ++turns_ < policy.spins, sleeps = turns_ >= policy.spins + policy.yields;
    const double slice = std::exchange(watch_, Stopwatch()).seconds();
    if (slice <= longestSlice) waited_ += slice;
    if (sleeps || turns_ % turnsPerLook == 0)
      pipes_.waiter_.lookAt(owner_, waited_, isDone);
    else if (!spins)
      pipes_.waiter_.checkErrors();
    if (spins) return relaxCpu();
    if (sleeps)
      sleep();
    else
      (void)::sched_yield();
  }
  void begin() noexcept {
    turns_ = 0;
    waited_ = 0;
    watch_ = Stopwatch();
  }

 private:
  static constexpr int turnsPerLook = 64;
  static constexpr double longestSlice = 1;                           // s
  static constexpr timespec moment{.tv_sec = 0, .tv_nsec = 200'000};  // how late a word is seen that no pipe tells of

  void sleep() {
    std::array<pollfd, mostPiped + 1> ends;
    nfds_t count = 0;
    if (reads_) ends[count++] = {pipes_.incoming_[at(owner_)].fd.get(), POLLIN, 0};
    for (std::size_t peer = 0; peer < pipes_.queues_.size(); ++peer)
      if (!pipes_.queues_[peer].given.empty()) ends[count++] = {pipes_.outgoing_[peer].fd.get(), POLLOUT, 0};
    (void)::ppoll(ends.data(), count, &moment, nullptr);
  }

  PagePipes& pipes_;
  int owner_;
  bool reads_;
  int turns_ = 0;
  double waited_ = 0;  // s
  Stopwatch watch_;    // since the last turn
};

PagePipes::PagePipes(const NodeSegment& segment, int rank, Waiter& waiter, std::vector<int> processes)
    : segment_(segment), rank_(rank), waiter_(waiter), processes_(std::move(processes)) {}

void PagePipes::check() noexcept {
  const auto stands = [](const End& end) { return !end.fd.valid() || end.stands(); };
  if (!std::ranges::all_of(outgoing_, stands) || !std::ranges::all_of(incoming_, stands)) close();
}

void PagePipes::advance(State all) noexcept {
  if (state_ == State::refused) return;
  if (all == State::refused) return close();
  if (all < state_ || state_ == State::open) return;
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

bool PagePipes::offer() {
  const int ranks = segment_.geometry().ranks;
  if (ranks > mostPiped) return false;
  const int each = slotBudget().take(ranks - 1);
  slots_ = each * (ranks - 1);
  if (each == 0) return false;
  outgoing_.resize(at(ranks));
  incoming_.resize(at(ranks));
  queues_.resize(at(ranks));
  constexpr std::size_t likely = 64;  // left for one peer, of a call in chunks
  for (Queue& queue : queues_) queue.given.reserve(likely);
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

bool PagePipes::open() {
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
  state_ = State::refused;
  for (std::vector<End>* ends : {&outgoing_, &incoming_}) {
    for (End& end : *ends) giveUpReplaced(end.fd, end.id);
    ends->clear();
  }
  queues_.clear();
  feeding_ = 0;
  slotBudget().giveBack(std::exchange(slots_, 0));
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
    if (count <= 0) failToGive(rank, given);
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

void PagePipes::failToGive(int rank, const Given& given) const {
  const int code = errno;
  fail(taccSystemError, "cannot give rank {} the {} bytes at {} of rank {} through a pipe: {} (errno {}){}",
       waiter_.nameOf(rank), given.bytes, static_cast<const void*>(given.from), waiter_.nameOf(rank_),
       std::strerror(code), code, adviceFor(code));
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
