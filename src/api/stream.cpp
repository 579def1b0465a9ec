#include "api/stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <unordered_map>

#include "core/fork.hpp"
#include "core/quiet_thread.hpp"
#include "core/uncancelled.hpp"

namespace tacc {

namespace {

struct StreamTable {
  ForkMutex mutex;
  std::unordered_map<taccStream_t, StreamPointer> streams;
};

/// Never destroyed: streams that the program leaves open work until the process ends.
StreamTable& streamTable() {
  static StreamTable* const table = new StreamTable;
  return *table;
}

// Made before memory runs out; copying an Error allocates nothing.
const Error noMemoryToQueue(taccSystemError, "no memory to queue the work on its stream");
const Error destroyedMeanwhile(taccInvalidUsage, "the stream was destroyed while work was given to it");

[[noreturn]] void failOnStream(taccStream_t handle) {
  if (handle == nullptr) fail(taccInvalidArgument, "stream is NULL; the null stream needs no stream functions");
  fail(taccInvalidArgument, "stream {} is not a stream, or has been destroyed; it must come from taccStreamCreate",
       static_cast<const void*>(handle));
}

}  // namespace

void checkIsOwn(const taccStream& stream) {
  if (stream.generation() == processGeneration()) return;
  fail(taccInvalidUsage,
       "stream {} is of process {}, from which this process was forked; a child makes streams of its own",
       static_cast<const void*>(&stream), stream.process());
}

taccStream_t makeStream() {
  auto stream = std::make_shared<taccStream>();
  StreamTable& table = streamTable();
  const std::lock_guard lock(table.mutex);
  taccStream_t const handle = stream.get();
  table.streams.emplace(handle, std::move(stream));
  return handle;
}

StreamPointer findStream(taccStream_t handle) {
  if (handle == nullptr) return nullptr;
  StreamTable& table = streamTable();
  const std::lock_guard lock(table.mutex);
  const auto found = table.streams.find(handle);
  if (found == table.streams.end()) failOnStream(handle);
  checkIsOwn(*found->second);
  return found->second;
}

StreamPointer requireStream(taccStream_t handle) {
  if (handle == nullptr) failOnStream(handle);
  return findStream(handle);
}

StreamPointer removeStream(taccStream_t handle) {
  if (handle == nullptr) failOnStream(handle);
  StreamTable& table = streamTable();
  const std::lock_guard lock(table.mutex);
  const auto found = table.streams.find(handle);
  if (found == table.streams.end()) failOnStream(handle);
  checkIsOwn(*found->second);
  return std::move(table.streams.extract(found).mapped());
}

}  // namespace tacc

taccStream::taccStream() : generation_(tacc::processGeneration()), process_(::getpid()) {
  try {
    thread_ = tacc::startQuietThread([this] { work(); });
  } catch (const std::system_error& error) {
    tacc::fail(taccSystemError, "cannot start the stream's thread: {}", error.what());
  }
}

taccStream::~taccStream() { stop(); }

void taccStream::push(tacc::Work work) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (tryPush(work)) return;
  } catch (const std::exception&) {
    refuse(work, tacc::noMemoryToQueue);
    return;
  }
  refuse(work, tacc::destroyedMeanwhile);
}

void taccStream::pushTogether(std::span<Given> given) noexcept {
  try {
    std::sort(given.begin(), given.end(), [](const Given& a, const Given& b) { return a.stream < b.stream; });
    std::vector<std::unique_lock<std::mutex>>
        locks;  // in the order of addresses, so that two groups never wait in a ring
    for (const Given& one : given) locks.emplace_back(one.stream->mutex_);
    for (const Given& one : given) one.stream->queue_.makeRoom();
    for (Given& one : given) {
      if (one.stream->tryPush(one.work)) one.stream = nullptr;
    }
  } catch (const std::exception&) {
    for (Given& one : given) one.stream->refuse(one.work, tacc::noMemoryToQueue);
    return;
  }
  for (Given& one : given) {
    if (one.stream != nullptr) one.stream->refuse(one.work, tacc::destroyedMeanwhile);
  }
}

bool taccStream::tryPush(tacc::Work& work) {
  if (stopping_) return false;
  queue_.makeRoom();
  queue_.push(std::move(work));
  ++givenCount_;
  given_.notify_one();
  return true;
}

void taccStream::refuse(tacc::Work& work, const tacc::Error& reason) noexcept {
  work.abandon(reason);
  const std::lock_guard lock(mutex_);
  noteUnknown(givenCount_);
  keep(reason);
}

bool taccStream::idle() {
  const std::lock_guard lock(mutex_);
  return doneCount_ == givenCount_;
}

std::optional<tacc::Error> taccStream::synchronize() {
  const tacc::Uncancelled wait;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&, given = givenCount_] { return doneCount_ >= given; });
  return std::exchange(error_, std::nullopt);
}

std::optional<tacc::Error> taccStream::error() {
  const std::lock_guard lock(mutex_);
  return doneCount_ == givenCount_ ? error_ : std::nullopt;
}

std::uint64_t taccStream::lastGiven() {
  const std::lock_guard lock(mutex_);
  return givenCount_;
}

bool taccStream::isDone(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return doneCount_ >= number;
}

void taccStream::waitFor(std::uint64_t number) {
  const tacc::Uncancelled wait;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return doneCount_ >= number; });
}

std::uint64_t taccStream::open() {
  const std::lock_guard lock(mutex_);
  if (givenCount_ == 0 && unknownFrom_ > unknownTo_)
    tacc::fail(taccInvalidUsage, "the stream has been given no work yet that a request could be for");
  ++openCount_;
  return givenCount_;
}

void taccStream::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (--openCount_ > 0) return;
  if (failures_.size() > 1) failures_.erase(failures_.begin(), failures_.end() - 1);
}

bool taccStream::finish(std::uint64_t number, const Deadline& deadline) {
  const tacc::Uncancelled wait;
  std::unique_lock lock(mutex_);
  const auto isDone = [&] { return doneCount_ >= number; };
  if (!deadline)
    done_.wait(lock, isDone);
  else if (!isDone() && (*deadline == past || !done_.wait_until(lock, *deadline, isDone)))
    return false;
  const auto failed = std::ranges::find(failures_, number, &Failure::number);
  if (failed != failures_.end()) throw tacc::Error(failed->error);
  if (number >= unknownFrom_ && number <= unknownTo_) throw tacc::Error(tacc::noMemoryToQueue);
  return true;
}

void taccStream::stop() {
  const tacc::Uncancelled wait;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    given_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void taccStream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    given_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    tacc::Work work = queue_.pop();
    lock.unlock();
    std::optional<tacc::Error> error = work.run();
    work = tacc::Work();  // lets go of the communicator before the work counts as done
    lock.lock();
    if (error) noteFailure(doneCount_ + 1, *error);
    keep(std::move(error));
    ++doneCount_;
    done_.notify_all();
  }
}

void taccStream::noteFailure(std::uint64_t number, const tacc::Error& error) noexcept {
  try {
    if (openCount_ == 0) failures_.clear();
    failures_.push_back({number, error});
  } catch (const std::bad_alloc&) {
    noteUnknown(number);
  }
}

void taccStream::noteUnknown(std::uint64_t number) noexcept {
  const bool isFirst = unknownFrom_ > unknownTo_;
  unknownFrom_ = isFirst ? number : std::min(unknownFrom_, number);
  unknownTo_ = isFirst ? number : std::max(unknownTo_, number);
}

void taccStream::keep(std::optional<tacc::Error> error) {
  if (error && !error_) error_ = std::move(error);
}
