#include "request_array.hpp"

#include <sched.h>

#include <algorithm>

#include "requests.hpp"

namespace tacc::mpi {
namespace {

constexpr double pauseSeconds = 50e-6;  // between two looks at several requests, of MPI and of tacc

}  // namespace

RequestArray::RequestArray(int count, MPI_Request* requests)
    : count_(requests == nullptr ? 0 : count), requests_(requests) {
  for (int i = 0; i < count_; ++i) isAny_ = isAny_ || plugin().requests.find(requests_[i]) != nullptr;
}

void RequestArray::completeDone() {
  for (int i = 0; i < count_; ++i) complete(i);
}

void RequestArray::completeAll() {
  Requests& requests = plugin().requests;
  for (int i = 0; i < count_; ++i) {
    if (const Operation* const operation = requests.find(requests_[i])) requests.await(*operation);
    complete(i);
  }
}

void RequestArray::letOthersRun() const {
  if (firstUnderWay() != nullptr) sched_yield();
}

void RequestArray::pause() const {
  if (const Operation* const operation = firstUnderWay()) plugin().requests.pause(*operation, pauseSeconds);
}

Operation* RequestArray::firstUnderWay() const {
  for (int i = 0; i < count_; ++i) {
    Operation* const operation = plugin().requests.find(requests_[i]);
    if (operation != nullptr && operation->call != nullptr) return operation;
  }
  return nullptr;
}

void RequestArray::complete(int index) {
  Operation* const operation = plugin().requests.find(requests_[index]);
  int code = MPI_SUCCESS;
  if (operation != nullptr && plugin().requests.completeIfDone(*operation, &code) && code != MPI_SUCCESS)
    failed_.push_back({index, code});
}

int RequestArray::codeOf(int code, int index) const noexcept {
  const auto found = std::ranges::find(failed_, index, &Failed::index);
  return code == MPI_SUCCESS && found != failed_.end() ? found->code : code;
}

int RequestArray::codeOfSeveral(int code, int completed, const int* indices, MPI_Status* statuses) const noexcept {
  if (code != MPI_SUCCESS) return code;
  bool hasFailed = false;
  for (int i = 0; i < completed; ++i) {
    const int one = codeOf(MPI_SUCCESS, indices == nullptr ? i : indices[i]);
    hasFailed = hasFailed || one != MPI_SUCCESS;
  }
  if (!hasFailed) return code;
  for (int i = 0; i < completed && statuses != MPI_STATUSES_IGNORE; ++i)
    statuses[i].MPI_ERROR = codeOf(MPI_SUCCESS, indices == nullptr ? i : indices[i]);
  return MPI_ERR_IN_STATUS;
}

}  // namespace tacc::mpi
