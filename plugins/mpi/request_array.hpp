// Requests that a program asks for, among which are some of operations that are taken over.
#pragma once

#include <mpi.h>

#include <vector>

#include "inside.hpp"
#include "plugin.hpp"

namespace tacc::mpi {

/// Whether a call on requests is to look for operations.
inline bool concernsOperations() noexcept { return plugin().requests.areInUse() && !Inside::isTrue(); }

/// The requests of one call, which MPI answers once it knows which operations are done.
class RequestArray {
 public:
  RequestArray(int count, MPI_Request* requests);
  bool hasOperations() const noexcept { return isAny_; }

  void completeDone();
  void completeAll();
  /// After a look that was in vain. A program that asks again and again takes the core from the thread that does the
  /// operation, where there is none for either.
  void letOthersRun() const;
  /// Calls `ask()` of MPI, with what is done, until `isOver()`.
  template <class Ask, class IsOver>
  int askUntil(Ask ask, IsOver isOver) {
    for (;;) {
      completeDone();
      const int code = ask();
      if (code != MPI_SUCCESS || isOver()) return code;
      pause();
    }
  }

  /// MPI's code of a call that has completed the request at `index`.
  int codeOf(int code, int index) const noexcept;
  /// MPI's code of a call that has completed those at `indices`, or all, and filled in their statuses.
  int codeOfSeveral(int code, int completed, const int* indices, MPI_Status* statuses) const noexcept;

 private:
  /// How an operation went that was completed in this call, and where its request stood. Only failures are kept.
  struct Failed {
    int index, code;
  };

  /// Before another look at all of them. The first that is under way may end it early.
  void pause() const;
  Operation* firstUnderWay() const;
  void complete(int index);

  int count_;
  MPI_Request* requests_;
  bool isAny_ = false;
  std::vector<Failed> failed_;
};

}  // namespace tacc::mpi
