// MPI's functions on requests, in Fortran: those of C between handles as numbers and handles as C has them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fortran_words.hpp"
#include "functions.h"
#include "plugin.hpp"

#define TACC_MPI_DECLARE(name, fortran) extern "C" decltype(MPI_##name) taccMpi_##name;
TACC_MPI_FORTRAN_COMPLETIONS(TACC_MPI_DECLARE)

namespace tacc::mpi {
namespace {

bool isIgnored(const void* status) {
#ifdef OPEN_MPI
  static const void* const one = fortranVariable("mpi_fortran_status_ignore_");
  static const void* const all = fortranVariable("mpi_fortran_statuses_ignore_");
#else
  static const void* const one = fortranVariable("MPIR_F08_MPI_STATUS_IGNORE_OBJ");
  static const void* const all = fortranVariable("MPIR_F08_MPI_STATUSES_IGNORE_OBJ");
#endif
  return status == nullptr || status == one || status == all;
}

/// A status of Fortran is in memory as C has it. Not at an address for one of C, though: its numbers are shorter.
class Status {
 public:
  explicit Status(void* word) : word_(isIgnored(word) ? nullptr : word) {
    if (word_ != nullptr) std::memcpy(&status_, word_, sizeof status_);  // MPI does not always fill in all of it
  }
  MPI_Status* get() { return word_ == nullptr ? MPI_STATUS_IGNORE : &status_; }
  void giveBack() const {
    if (word_ != nullptr) std::memcpy(word_, &status_, sizeof status_);
  }

 private:
  void* word_;
  MPI_Status status_;
};

class Statuses {
 public:
  Statuses(int count, void* word) : word_(isIgnored(word) ? nullptr : word) {
    if (word_ == nullptr || count <= 0) return;
    statuses_.resize(static_cast<std::size_t>(count));
    std::memcpy(statuses_.data(), word_, bytes());  // MPI fills in some alone
  }
  MPI_Status* get() { return word_ == nullptr ? MPI_STATUSES_IGNORE : statuses_.data(); }
  void giveBack() const {
    if (!statuses_.empty()) std::memcpy(word_, statuses_.data(), bytes());
  }

 private:
  std::size_t bytes() const { return statuses_.size() * sizeof(MPI_Status); }

  void* word_;
  std::vector<MPI_Status> statuses_;
};

class Handle {
 public:
  explicit Handle(MPI_Fint* number) : number_(number), handle_(PMPI_Request_f2c(*number)), before_(handle_) {}
  MPI_Request* get() { return &handle_; }
  void giveBack() const {
    if (handle_ != before_) *number_ = PMPI_Request_c2f(handle_);
  }

 private:
  MPI_Fint* number_;
  MPI_Request handle_, before_;
};

class Handles {
 public:
  Handles(int count, MPI_Fint* numbers) : numbers_(numbers) {
    handles_.reserve(static_cast<std::size_t>(std::max(count, 1)));  // not null: Open MPI takes that for an error
    for (int i = 0; i < count; ++i) handles_.push_back(PMPI_Request_f2c(numbers[i]));
    before_ = handles_;
  }
  MPI_Request* get() { return handles_.data(); }
  void giveBack() const {
    for (std::size_t i = 0; i < handles_.size(); ++i)
      if (handles_[i] != before_[i]) numbers_[i] = PMPI_Request_c2f(handles_[i]);
  }

 private:
  MPI_Fint* numbers_;
  std::vector<MPI_Request> handles_, before_;
};

/// Places count from 1.
MPI_Fint placeOf(int index) { return index == MPI_UNDEFINED ? index : index + 1; }

/// Of functions whose result is a flag: a logical, of which MPI's library is built for compilers that have 1 for true.
void answerFlag(MPI_Fint* word, int code, int flag) {
  if (code == MPI_SUCCESS) *word = flag != 0 ? 1 : 0;
}

/// Those of one request and nothing else.
void callOnOne(int (*function)(MPI_Request*), MPI_Fint* request, void* error) {
  Handle handle(request);
  const int code = function(handle.get());
  handle.giveBack();
  answer(error, code);
}

void callForSome(int (*function)(int, MPI_Request*, int*, int*, MPI_Status*), const MPI_Fint* count, MPI_Fint* requests,
                 MPI_Fint* completed, MPI_Fint* indices, void* statuses, void* error) {
  Handles handles(*count, requests);
  Statuses found(*count, statuses);
  const int code = function(*count, handles.get(), completed, indices, found.get());
  handles.giveBack();
  found.giveBack();
  for (int i = 0; i < *completed; ++i) indices[i] = placeOf(indices[i]);
  answer(error, code);
}

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

TACC_MPI_FORTRAN_ENTRY(Test)(MPI_Fint* request, MPI_Fint* flag, void* status, void* error) {
  Handle handle(request);
  Status found(status);
  int isDone = 0;
  const int code = taccMpi_Test(handle.get(), &isDone, found.get());
  handle.giveBack();
  if (isDone != 0) found.giveBack();
  answerFlag(flag, code, isDone);
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Wait)(MPI_Fint* request, void* status, void* error) {
  Handle handle(request);
  Status found(status);
  const int code = taccMpi_Wait(handle.get(), found.get());
  handle.giveBack();
  found.giveBack();
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Testall)
(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* flag, void* statuses, void* error) {
  Handles handles(*count, requests);
  Statuses found(*count, statuses);
  int areDone = 0;
  const int code = taccMpi_Testall(*count, handles.get(), &areDone, found.get());
  handles.giveBack();
  if (areDone != 0) found.giveBack();
  answerFlag(flag, code, areDone);
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Waitall)(const MPI_Fint* count, MPI_Fint* requests, void* statuses, void* error) {
  Handles handles(*count, requests);
  Statuses found(*count, statuses);
  const int code = taccMpi_Waitall(*count, handles.get(), found.get());
  handles.giveBack();
  found.giveBack();
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Testany)
(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* place, MPI_Fint* flag, void* status, void* error) {
  Handles handles(*count, requests);
  Status found(status);
  int index = MPI_UNDEFINED, isDone = 0;
  const int code = taccMpi_Testany(*count, handles.get(), &index, &isDone, found.get());
  handles.giveBack();
  if (isDone != 0) found.giveBack();
  *place = placeOf(index);
  answerFlag(flag, code, isDone);
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Waitany)
(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* place, void* status, void* error) {
  Handles handles(*count, requests);
  Status found(status);
  int index = MPI_UNDEFINED;
  const int code = taccMpi_Waitany(*count, handles.get(), &index, found.get());
  handles.giveBack();
  found.giveBack();
  *place = placeOf(index);
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Testsome)
(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* completed, MPI_Fint* indices, void* statuses, void* error) {
  callForSome(taccMpi_Testsome, count, requests, completed, indices, statuses, error);
}

TACC_MPI_FORTRAN_ENTRY(Waitsome)
(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* completed, MPI_Fint* indices, void* statuses, void* error) {
  callForSome(taccMpi_Waitsome, count, requests, completed, indices, statuses, error);
}

TACC_MPI_FORTRAN_ENTRY(Request_get_status)(const MPI_Fint* request, MPI_Fint* flag, void* status, void* error) {
  Status found(status);
  int isDone = 0;
  const int code = taccMpi_Request_get_status(PMPI_Request_f2c(*request), &isDone, found.get());
  if (isDone != 0) found.giveBack();
  answerFlag(flag, code, isDone);
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Request_free)(MPI_Fint* request, void* error) {
  callOnOne(taccMpi_Request_free, request, error);
}

TACC_MPI_FORTRAN_ENTRY(Cancel)(MPI_Fint* request, void* error) { callOnOne(taccMpi_Cancel, request, error); }

TACC_MPI_FORTRAN_ENTRY(Start)(MPI_Fint* request, void* error) { callOnOne(taccMpi_Start, request, error); }

TACC_MPI_FORTRAN_ENTRY(Startall)(const MPI_Fint* count, MPI_Fint* requests, void* error) {
  Handles handles(*count, requests);
  const int code = taccMpi_Startall(*count, handles.get());
  handles.giveBack();
  answer(error, code);
}
