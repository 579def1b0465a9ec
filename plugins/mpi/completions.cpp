// MPI's functions that test, wait for, start and free requests: MPI answers them, once it knows which of the operations
// behind requests that are taken over are done.
#include <sched.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "plugin.hpp"
#include "requests.hpp"

namespace tacc::mpi {
namespace {

constexpr double pauseSeconds = 50e-6;  // between two looks at several requests, of MPI and of tacc

/// Whether this call is to look for operations.
bool concerns() noexcept { return plugin().requests.areInUse() && !Inside::isTrue(); }

/// How an operation went that was completed in this call, and where its request stood. Only failures are kept.
struct Failed {
  int index, code;
};

class Array {
 public:
  Array(int count, MPI_Request* requests) : count_(requests == nullptr ? 0 : count), requests_(requests) {
    for (int i = 0; i < count_; ++i) isAny_ = isAny_ || plugin().requests.find(requests_[i]) != nullptr;
  }
  bool hasOperations() const noexcept { return isAny_; }

  void completeDone() {
    for (int i = 0; i < count_; ++i) complete(i);
  }
  void completeAll() {
    Requests& requests = plugin().requests;
    for (int i = 0; i < count_; ++i) {
      if (const Operation* const operation = requests.find(requests_[i])) requests.await(*operation);
      complete(i);
    }
  }
  /// After a look that was in vain. A program that asks again and again takes the core from the thread that does the
  /// operation, where there is none for either.
  void letOthersRun() const {
    if (hasUnderWay()) sched_yield();
  }
  /// Before another look at all of them. The first that is under way may end it early.
  void pause() const {
    Requests& requests = plugin().requests;
    for (int i = 0; i < count_; ++i) {
      const Operation* const operation = requests.find(requests_[i]);
      if (operation != nullptr && operation->call != nullptr) return requests.pause(*operation, pauseSeconds);
    }
  }

  /// MPI's code of a call that has completed the request at `index`.
  int codeOf(int code, int index) const noexcept {
    const auto found = std::ranges::find(failed_, index, &Failed::index);
    return code == MPI_SUCCESS && found != failed_.end() ? found->code : code;
  }
  /// MPI's code of a call that has completed those at `indices`, or all, and filled in their statuses.
  int codeOfSeveral(int code, int completed, const int* indices, MPI_Status* statuses) const noexcept {
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

 private:
  bool hasUnderWay() const {
    for (int i = 0; i < count_; ++i) {
      const Operation* const operation = plugin().requests.find(requests_[i]);
      if (operation != nullptr && operation->call != nullptr) return true;
    }
    return false;
  }
  void complete(int index) {
    Operation* const operation = plugin().requests.find(requests_[index]);
    int code = MPI_SUCCESS;
    if (operation != nullptr && plugin().requests.completeIfDone(*operation, &code) && code != MPI_SUCCESS)
      failed_.push_back({index, code});
  }

  int count_;
  MPI_Request* requests_;
  bool isAny_ = false;
  std::vector<Failed> failed_;
};

/// Calls `ask()` of MPI, with what is done among `array`, until `isOver()`.
template <class Ask, class IsOver>
int askUntil(Array& array, Ask ask, IsOver isOver) {
  for (;;) {
    array.completeDone();
    const int code = ask();
    if (code != MPI_SUCCESS || isOver()) return code;
    array.pause();
  }
}

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

TACC_MPI_ENTRY taccMpi_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (!concerns() || request == nullptr) return PMPI_Test(request, flag, status);
  const Inside inside;
  Array array(1, request);
  array.completeDone();
  const int code = PMPI_Test(request, flag, status);
  if (code == MPI_SUCCESS && *flag == 0) array.letOthersRun();
  return array.codeOf(code, 0);
}

TACC_MPI_ENTRY taccMpi_Wait(MPI_Request* request, MPI_Status* status) {
  if (!concerns() || request == nullptr) return PMPI_Wait(request, status);
  const Inside inside;
  Array array(1, request);
  array.completeAll();
  return array.codeOf(PMPI_Wait(request, status), 0);
}

TACC_MPI_ENTRY taccMpi_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (!concerns()) return PMPI_Testall(count, requests, flag, statuses);
  const Inside inside;
  Array array(count, requests);
  array.completeDone();
  const int code = PMPI_Testall(count, requests, flag, statuses);
  if (code == MPI_SUCCESS && *flag == 0) array.letOthersRun();
  return code == MPI_SUCCESS && *flag != 0 ? array.codeOfSeveral(code, count, nullptr, statuses) : code;
}

TACC_MPI_ENTRY taccMpi_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (!concerns()) return PMPI_Waitall(count, requests, statuses);
  const Inside inside;
  Array array(count, requests);
  array.completeAll();
  return array.codeOfSeveral(PMPI_Waitall(count, requests, statuses), count, nullptr, statuses);
}

TACC_MPI_ENTRY taccMpi_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (!concerns()) return PMPI_Testany(count, requests, index, flag, status);
  const Inside inside;
  Array array(count, requests);
  array.completeDone();
  const int code = PMPI_Testany(count, requests, index, flag, status);
  if (code == MPI_SUCCESS && *flag == 0) array.letOthersRun();
  return code == MPI_SUCCESS && *flag != 0 ? array.codeOf(code, *index) : code;
}

TACC_MPI_ENTRY taccMpi_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (!concerns()) return PMPI_Waitany(count, requests, index, status);
  const Inside inside;
  Array array(count, requests);
  if (!array.hasOperations()) return PMPI_Waitany(count, requests, index, status);
  int flag = 0;
  const int code = askUntil(
      array, [&] { return PMPI_Testany(count, requests, index, &flag, status); }, [&] { return flag != 0; });
  return array.codeOf(code, *index);
}

TACC_MPI_ENTRY taccMpi_Testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  if (!concerns()) return PMPI_Testsome(count, requests, completed, indices, statuses);
  const Inside inside;
  Array array(count, requests);
  array.completeDone();
  const int code = PMPI_Testsome(count, requests, completed, indices, statuses);
  if (code == MPI_SUCCESS && *completed == 0) array.letOthersRun();
  return code == MPI_SUCCESS ? array.codeOfSeveral(code, std::max(*completed, 0), indices, statuses) : code;
}

TACC_MPI_ENTRY taccMpi_Waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  if (!concerns()) return PMPI_Waitsome(count, requests, completed, indices, statuses);
  const Inside inside;
  Array array(count, requests);
  if (!array.hasOperations()) return PMPI_Waitsome(count, requests, completed, indices, statuses);
  const int code = askUntil(
      array, [&] { return PMPI_Testsome(count, requests, completed, indices, statuses); },
      [&] { return *completed != 0; });  // MPI_UNDEFINED where none is active
  return code == MPI_SUCCESS ? array.codeOfSeveral(code, std::max(*completed, 0), indices, statuses) : code;
}

TACC_MPI_ENTRY taccMpi_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (!concerns()) return PMPI_Request_get_status(request, flag, status);
  const Inside inside;
  Array array(1, &request);
  array.completeDone();
  return array.codeOf(PMPI_Request_get_status(request, flag, status), 0);
}

TACC_MPI_ENTRY taccMpi_Request_free(MPI_Request* request) {
  if (!concerns() || request == nullptr) return PMPI_Request_free(request);
  const Inside inside;
  Operation* const operation = plugin().requests.find(*request);
  return operation == nullptr ? PMPI_Request_free(request) : plugin().requests.free(*operation, request);
}

/// MPI cancels no collectives. What stands for one is a receive, which it would.
TACC_MPI_ENTRY taccMpi_Cancel(MPI_Request* request) {
  if (!concerns() || request == nullptr) return PMPI_Cancel(request);
  const Inside inside;
  const Operation* const operation = plugin().requests.find(*request);
  return operation == nullptr ? PMPI_Cancel(request) : plugin().requests.refuseToCancel(*operation);
}

TACC_MPI_ENTRY taccMpi_Start(MPI_Request* request) {
  if (!concerns() || request == nullptr) return PMPI_Start(request);
  const Inside inside;
  Operation* const operation = plugin().requests.find(*request);
  return operation == nullptr ? PMPI_Start(request) : plugin().requests.start(*operation);
}

TACC_MPI_ENTRY taccMpi_Startall(int count, MPI_Request* requests) {
  if (!concerns() || !Array(count, requests).hasOperations()) return PMPI_Startall(count, requests);
  for (int i = 0; i < count; ++i)
    if (const int code = taccMpi_Start(&requests[i]); code != MPI_SUCCESS) return code;
  return MPI_SUCCESS;
}
