// MPI's functions on requests, in Fortran: those of C between handles as numbers and handles as C has them.
#include <cstring>
#include <vector>

#include "fortran_words.hpp"
#include "functions.h"
#include "plugin.hpp"

#define TACC_MPI_DECLARE(name, fortran) extern "C" decltype(MPI_##name) taccMpi_##name;
TACC_MPI_FORTRAN_COMPLETIONS(TACC_MPI_DECLARE)

namespace tacc::mpi {
namespace {

/// Statuses of Fortran are in memory as C has them. Not at an address for one in C, though: their numbers are shorter.
class Statuses {
 public:
  Statuses(int count, void* word) : word_(isIgnored(word) ? nullptr : word) {
    if (word_ == nullptr) return;
    statuses_.resize(static_cast<std::size_t>(count > 0 ? count : 0) + 1);
    std::memcpy(statuses_.data(), word_, (statuses_.size() - 1) * sizeof(MPI_Status));  // MPI fills in some alone
  }
  MPI_Status* one() { return word_ == nullptr ? MPI_STATUS_IGNORE : statuses_.data(); }
  MPI_Status* all() { return word_ == nullptr ? MPI_STATUSES_IGNORE : statuses_.data(); }
  void giveBack() const {
    if (word_ != nullptr) std::memcpy(word_, statuses_.data(), (statuses_.size() - 1) * sizeof(MPI_Status));
  }

 private:
  static bool isIgnored(const void* word) {
#ifdef OPEN_MPI
    static const void* const one = fortranVariable("mpi_fortran_status_ignore_");
    static const void* const all = fortranVariable("mpi_fortran_statuses_ignore_");
#else
    static const void* const one = fortranVariable("MPIR_F08_MPI_STATUS_IGNORE_OBJ");
    static const void* const all = fortranVariable("MPIR_F08_MPI_STATUSES_IGNORE_OBJ");
#endif
    return word == nullptr || word == one || word == all;
  }

  void* word_;
  std::vector<MPI_Status> statuses_;
};

class Handles {
 public:
  Handles(int count, MPI_Fint* numbers) : numbers_(numbers) {
    for (int i = 0; i < count; ++i) handles_.push_back(PMPI_Request_f2c(numbers[i]));
    before_ = handles_;
  }
  MPI_Request* data() { return handles_.data(); }
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
  Handles handles(1, request);
  const int code = function(handles.data());
  handles.giveBack();
  answer(error, code);
}

void callForSome(int (*function)(int, MPI_Request*, int*, int*, MPI_Status*), const MPI_Fint* count, MPI_Fint* requests,
                 MPI_Fint* completed, MPI_Fint* indices, void* statuses, void* error) {
  Handles handles(*count, requests);
  Statuses found(*count, statuses);
  const int code = function(*count, handles.data(), completed, indices, found.all());
  handles.giveBack();
  found.giveBack();
  for (int i = 0; i < *completed; ++i) indices[i] = placeOf(indices[i]);
  answer(error, code);
}

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

TACC_MPI_FORTRAN_ENTRY(Test)(MPI_Fint* request, MPI_Fint* flag, void* status, void* error) {
  Handles handles(1, request);
  Statuses found(1, status);
  int isDone = 0;
  const int code = taccMpi_Test(handles.data(), &isDone, found.one());
  handles.giveBack();
  if (isDone != 0) found.giveBack();
  answerFlag(flag, code, isDone);
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Wait)(MPI_Fint* request, void* status, void* error) {
  Handles handles(1, request);
  Statuses found(1, status);
  const int code = taccMpi_Wait(handles.data(), found.one());
  handles.giveBack();
  found.giveBack();
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Testall)
(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* flag, void* statuses, void* error) {
  Handles handles(*count, requests);
  Statuses found(*count, statuses);
  int areDone = 0;
  const int code = taccMpi_Testall(*count, handles.data(), &areDone, found.all());
  handles.giveBack();
  if (areDone != 0) found.giveBack();
  answerFlag(flag, code, areDone);
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Waitall)(const MPI_Fint* count, MPI_Fint* requests, void* statuses, void* error) {
  Handles handles(*count, requests);
  Statuses found(*count, statuses);
  const int code = taccMpi_Waitall(*count, handles.data(), found.all());
  handles.giveBack();
  found.giveBack();
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Testany)
(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* place, MPI_Fint* flag, void* status, void* error) {
  Handles handles(*count, requests);
  Statuses found(1, status);
  int index = MPI_UNDEFINED, isDone = 0;
  const int code = taccMpi_Testany(*count, handles.data(), &index, &isDone, found.one());
  handles.giveBack();
  if (isDone != 0) found.giveBack();
  *place = placeOf(index);
  answerFlag(flag, code, isDone);
  answer(error, code);
}

TACC_MPI_FORTRAN_ENTRY(Waitany)
(const MPI_Fint* count, MPI_Fint* requests, MPI_Fint* place, void* status, void* error) {
  Handles handles(*count, requests);
  Statuses found(1, status);
  int index = MPI_UNDEFINED;
  const int code = taccMpi_Waitany(*count, handles.data(), &index, found.one());
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
  Statuses found(1, status);
  int isDone = 0;
  const int code = taccMpi_Request_get_status(PMPI_Request_f2c(*request), &isDone, found.one());
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
  const int code = taccMpi_Startall(*count, handles.data());
  handles.giveBack();
  answer(error, code);
}
