#include "requests.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include "plugin.hpp"
#include "progress.hpp"

namespace tacc::mpi {
namespace {

constexpr double firstSlice = 20e-6, longestSlice = 1e-3;  // seconds between two looks at MPI
constexpr double patienceAtEnd = 10;                       // seconds

using Clock = std::chrono::steady_clock;

}  // namespace

int Requests::failOperation(const Operation& operation, const std::string& why) noexcept {
  Communicator place;
  CallingThread& thread = callingThread();
  Complaint complaint{nullptr, thread.complaint};
  {
    const std::lock_guard lock(mutex_);
    place.mpi = operation.handler;
    complaint.communicator = operation.communicator;
    if (complaint.communicator != nullptr) ++complaint.communicator->complaints;
  }
  place.rank = operation.rank;
  place.ranks = operation.ranks;
  thread.complaint = &complaint;
  const int code = failCall(operation.name, place, why);
  thread.complaint = complaint.outer;
  const std::lock_guard lock(mutex_);
  if (complaint.communicator != nullptr && --complaint.communicator->complaints == 0) complained_.notify_all();
  return code;
}

void Requests::leave(const Operation& operation) noexcept {
  if (operation.communicator != nullptr) operation.communicator->underWay.fetch_sub(1, std::memory_order_release);
}

void Requests::open() {
  PMPI_Comm_dup(MPI_COMM_SELF, &self_);
  PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, 0, self_, &never_);
}

void Requests::close() noexcept {
  const auto deadline = Clock::now() + std::chrono::duration<double>(patienceAtEnd);
  std::vector<Operation*> open;
  for (const auto& [handle, operation] : all_) open.push_back(operation.get());
  for (const auto& operation : freed_) open.push_back(operation.get());
  for (Operation* const operation : open) {
    while (operation->call != nullptr && Clock::now() < deadline &&
           taccRequestWaitFor(operation->call, longestSlice) == taccInProgress)
      progress();
    if (operation->call != nullptr) {
      std::string why = "not all ranks have called it";
      if (taccRequestTest(operation->call) != taccInProgress)
        why = settle(*operation);
      else
        giveUp(*operation);
      if (!why.empty())
        std::fprintf(stderr, "tacc: MPI_Finalize on rank %d of %d, with a request of %s that is not complete: %s\n",
                     operation->rank, operation->ranks, operation->name, why.c_str());
    }
    if (operation->handle != MPI_REQUEST_NULL) PMPI_Request_free(&operation->handle);
  }
  all_.clear();
  freed_.clear();
  count_ = 0;
  PMPI_Cancel(&never_);
  PMPI_Wait(&never_, MPI_STATUS_IGNORE);
  PMPI_Comm_free(&self_);
}

int Requests::makeTag() {
  const std::lock_guard lock(mutex_);
  if (freeTags_.empty()) {
    if (nextTag_ == 32767) throw std::runtime_error("32,766 nonblocking collectives are under way or not freed");
    return nextTag_++;
  }
  const int tag = freeTags_.back();
  freeTags_.pop_back();
  return tag;
}

Operation& Requests::keep(std::unique_ptr<Operation> operation) {
  const std::lock_guard lock(mutex_);
  freeTags_.reserve(freeTags_.size() + all_.size() + freed_.size() + 1);  // take() must not fail
  Operation& kept = *operation;
  all_.emplace(kept.handle, std::move(operation));
  count_.fetch_add(1, std::memory_order_relaxed);
  return kept;
}

std::unique_ptr<Operation> Requests::take(const Operation& operation) noexcept {
  const std::lock_guard lock(mutex_);
  auto node = all_.extract(operation.handle);
  if (node.empty()) return nullptr;
  freeTags_.push_back(operation.tag);
  count_.fetch_sub(1, std::memory_order_relaxed);
  return std::move(node.mapped());
}

int Requests::give(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  if (communicator.stream == nullptr && taccStreamCreate(&communicator.stream) != taccSuccess)
    return failOperation(operation, taccGetLastError(nullptr));
  // Collectives of one communicator are begun by one thread at a time: the last call is this one.
  if (operation.prepared.start(communicator.stream) != taccSuccess ||
      taccStreamRequest(communicator.stream, &operation.call) != taccSuccess)
    return failOperation(operation, taccGetLastError(nullptr));
  communicator.underWay.fetch_add(1, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int Requests::begin(const char* name, Communicator& communicator, Prepared prepared, MPI_Request* request) {
  completeFreed();
  auto made = std::make_unique<Operation>(Operation{name,
                                                    &communicator,
                                                    communicator.mpi,
                                                    communicator.rank,
                                                    communicator.ranks,
                                                    makeTag(),
                                                    MPI_REQUEST_NULL,
                                                    nullptr,
                                                    std::move(prepared),
                                                    {}});
  PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, made->tag, self_, &made->handle);
  Operation& operation = keep(std::move(made));
  const int code = give(operation);
  *request = operation.handle;
  if (code == MPI_SUCCESS) return code;
  PMPI_Send(nullptr, 0, MPI_BYTE, 0, operation.tag, self_);
  take(operation);
  return code;
}

int Requests::makePersistent(const char* name, Communicator& lane, std::function<Prepared()> prepare,
                             MPI_Request* request) {
  auto made = std::make_unique<Operation>(Operation{
      name, &lane, lane.mpi, lane.rank, lane.ranks, makeTag(), MPI_REQUEST_NULL, nullptr, {}, std::move(prepare)});
  PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, made->tag, self_, &made->handle);
  *request = keep(std::move(made)).handle;
  return MPI_SUCCESS;
}

int Requests::start(Operation& operation) {
  completeFreed();
  if (operation.communicator == nullptr)
    return failOperation(operation, "its communicator has been freed, and so it cannot be started");
  if (!operation.prepareAgain || operation.call != nullptr)
    return failOperation(operation, "MPI_Start of a request that is under way already");
  try {
    operation.prepared = operation.prepareAgain();
  } catch (const std::exception& error) {
    return failOperation(operation, error.what());
  }
  const int code = give(operation);
  if (code == MPI_SUCCESS) PMPI_Start(&operation.handle);
  return code;
}

int Requests::free(Operation& operation, MPI_Request* request) {
  std::unique_ptr<Operation> owner;  // ends without the lock: what it keeps of MPI may call the program
  {
    const std::lock_guard lock(mutex_);
    freed_.reserve(freed_.size() + 1);
    owner = std::move(all_.extract(operation.handle).mapped());
    if (owner->call != nullptr) {
      // Its receive is kept until the message comes: once freed, MPICH 4.0.2 may never match it, and the send waits.
      freed_.push_back(std::move(owner));
      *request = MPI_REQUEST_NULL;
      return MPI_SUCCESS;
    }
    freeTags_.push_back(owner->tag);
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
  return PMPI_Request_free(request);
}

int Requests::refuseToCancel(const Operation& operation) noexcept {
  return failOperation(operation, "MPI_Cancel of a collective, which cannot be cancelled");
}

Operation* Requests::find(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(request);
  return found == all_.end() ? nullptr : found->second.get();
}

std::string Requests::settle(Operation& operation) {
  const taccResult_t result = taccRequestTest(operation.call);
  std::string why = result == taccSuccess ? "" : taccGetLastError(nullptr);
  taccRequestDestroy(std::exchange(operation.call, nullptr));
  {
    const std::lock_guard lock(mutex_);
    leave(operation);
  }
  try {
    if (result == taccSuccess) operation.prepared.deliver();
  } catch (const std::exception& error) {
    why = error.what();
  }
  operation.prepared = {};
  PMPI_Send(nullptr, 0, MPI_BYTE, 0, operation.tag, self_);
  return why;
}

void Requests::giveUp(Operation& operation) noexcept {
  if (operation.communicator != nullptr && operation.communicator->tacc != nullptr)
    taccCommAbort(std::exchange(operation.communicator->tacc, nullptr));
  taccRequestWait(operation.call);
  taccRequestDestroy(std::exchange(operation.call, nullptr));
  if (operation.handle != MPI_REQUEST_NULL) PMPI_Cancel(&operation.handle);
}

int Requests::end(Operation& operation) noexcept {
  const std::string why = settle(operation);
  return why.empty() ? MPI_SUCCESS : failOperation(operation, why);
}

bool Requests::completeIfDone(Operation& operation, int* code) {
  if (operation.call == nullptr || taccRequestTest(operation.call) == taccInProgress) return false;
  *code = end(operation);
  if (!operation.prepareAgain) take(operation);
  return true;
}

/// Of those that nobody asks for any more.
void Requests::completeFreed() noexcept {
  std::vector<std::unique_ptr<Operation>> done;
  {
    const std::lock_guard lock(mutex_);
    if (freed_.empty()) return;
    const auto first = std::partition(freed_.begin(), freed_.end(), [](const std::unique_ptr<Operation>& operation) {
      return taccRequestTest(operation->call) == taccInProgress;
    });
    std::move(first, freed_.end(), std::back_inserter(done));
    freed_.erase(first, freed_.end());
    // From now on they are in no list, and nobody tells them that their communicator has ended.
    for (const auto& operation : done) {
      leave(*operation);
      operation->communicator = nullptr;
      operation->handler = MPI_COMM_WORLD;
    }
  }
  for (const auto& operation : done) {
    end(*operation);
    PMPI_Wait(&operation->handle, MPI_STATUS_IGNORE);
    if (operation->handle != MPI_REQUEST_NULL) PMPI_Request_free(&operation->handle);  // a persistent one stays
    const std::lock_guard lock(mutex_);
    freeTags_.push_back(operation->tag);
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Requests::await(taccRequest_t call) {
  for (double slice = firstSlice; taccRequestWaitFor(call, slice) == taccInProgress;
       slice = std::min(2 * slice, longestSlice))
    progress();
}

void Requests::await(const Operation& operation) {
  completeFreed();
  if (operation.call != nullptr) await(operation.call);
}

void Requests::pause(const Operation& operation, double seconds) {
  completeFreed();
  if (operation.call != nullptr) taccRequestWaitFor(operation.call, seconds);
}

void Requests::progress() noexcept {
  const std::unique_lock lock(neverMutex_, std::try_to_lock);
  if (lock) letMpiProgress(never_);  // else another thread does it
}

void Requests::drain(const Communicator& communicator) {
  taccRequest_t last = nullptr;
  if (taccStreamQuery(communicator.stream) != taccInProgress ||
      taccStreamRequest(communicator.stream, &last) != taccSuccess)
    return;
  await(last);
  taccRequestDestroy(last);
}

void Requests::forget(Communicator& communicator) noexcept {
  std::vector<Communicator*> ended{&communicator};
  for (const auto& lane : communicator.lanes) ended.push_back(lane.get());
  for (const Communicator* const one : ended)
    if (one->stream != nullptr) drain(*one);
  std::unique_lock lock(mutex_);
  const auto forgetIn = [&](Operation& operation) {
    if (std::ranges::find(ended, operation.communicator) == ended.end()) return;
    operation.communicator = nullptr;
    operation.handler = MPI_COMM_WORLD;
  };
  for (const auto& [handle, operation] : all_) forgetIn(*operation);
  for (const auto& operation : freed_) forgetIn(*operation);
  // An error handler may free its communicator itself.
  for (Complaint* own = callingThread().complaint; own != nullptr; own = own->outer)
    if (std::ranges::find(ended, own->communicator) != ended.end())
      --std::exchange(own->communicator, nullptr)->complaints;
  complained_.wait(lock, [&] { return std::ranges::all_of(ended, [](auto* one) { return one->complaints == 0; }); });
}

}  // namespace tacc::mpi
