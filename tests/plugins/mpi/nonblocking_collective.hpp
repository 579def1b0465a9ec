// A drawn collective that returns a request, nonblocking or persistent: what it is, its buffers, and what is to come of
// it. Numbers are such that everybody knows all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "cases.hpp"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PERSISTENT(name) MPIX_##name
#endif

// A collective in the form with large counts, where the MPI has it and that was drawn.
#if MPI_VERSION >= 4
#define BEGIN(name, ...) \
  code = isLarge_ ? MPI_##name##_c(__VA_ARGS__, comm_, &request) : MPI_##name(__VA_ARGS__, comm_, &request)
#define MAKE(name, ...)                                       \
  if (isLarge_)                                               \
    PERSISTENT(name##_c)(__VA_ARGS__, comm_, none, &request); \
  else                                                        \
    PERSISTENT(name)(__VA_ARGS__, comm_, none, &request)
#else
#define BEGIN(name, ...) code = MPI_##name(__VA_ARGS__, comm_, &request)
#define MAKE(name, ...) PERSISTENT(name)(__VA_ARGS__, comm_, none, &request)
#endif

namespace tacc::test {

/// What is to be begun, and to be looked at when it is done.
class Drawn {
 public:
  Drawn() = default;
  virtual ~Drawn() = default;
  Drawn(const Drawn&) = delete;
  Drawn& operator=(const Drawn&) = delete;
  /// Whether the library serves it, and not MPI: faults of MPI's own, as they were found, are none of this test.
  virtual bool isTaken() const = 0;
  /// What a rank has for each start of a persistent one.
  virtual void fill() = 0;
  virtual MPI_Request begin() = 0;
#ifdef PERSISTENT
  virtual MPI_Request makePersistent() = 0;
#endif
  virtual void check() const = 0;
};

inline constexpr int kinds = 9;
inline constexpr const char* kindNames[kinds] = {
    "allreduce", "bcast", "reduce", "reduce_scatter_block", "allgather", "alltoall", "gather", "scatter", "barrier"};

/// Whether this MPI's own persistent collectives do what they should. Those of MPICH 4.0 do not: gather and scatter may
/// move nothing, derived types end in a failed assertion, inactive requests are not complete.
#ifdef OPEN_MPI
inline constexpr bool servesPersistentOnes = true;
#else
inline constexpr bool servesPersistentOnes = false;
#endif

/// What rank `rank` has at `i` in collective `id`.
inline int number(int id, int rank, std::size_t i) { return 1000 * id + 7 * rank + static_cast<int>(i % 13); }

/// Two numbers as one element, which is no type that is known by its name: it goes through copies.
inline MPI_Datatype pairType() {
  static const MPI_Datatype type = [] {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT, &made);
    MPI_Type_commit(&made);
    return made;
  }();
  return type;
}

/// An operation that tacc does not know: MPI's own request among the others.
inline MPI_Op sumOfTheProgram() {
  static const MPI_Op op = [] {
    MPI_Op made = MPI_OP_NULL;
    MPI_Op_create(
        [](void* in, void* inOut, int* count, MPI_Datatype*) CALLED_BY_MPI {
          for (int i = 0; i < *count; ++i) static_cast<int*>(inOut)[i] += static_cast<int*>(in)[i];
        },
        1, &made);
    return made;
  }();
  return op;
}

/// One collective: what it is, its buffers, and what is to come of it.
class Collective : public Drawn {
 public:
  Collective(MPI_Comm comm, Draws& draws, int id, bool isTacc)
      : comm_(comm),
        id_(id),
        kind_(draws.upTo(kinds - 1)),
        root_(0),
        count_(2 * static_cast<std::size_t>(draws.count() / 2)),
        inPlace_(draws.upTo(2) == 0),
        isTacc_(isTacc),
        isLarge_(draws.upTo(1) == 0) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &ranks_);
    root_ = draws.upTo(ranks_ - 1);
    // MPICH 4.0 fails in MPI_Ialltoall and MPI_Ireduce in place; no type for what it passes on either.
    isPassed_ = kind_ != 8 && draws.upTo(4) == 0;
    if (kind_ == 5 || kind_ == 2 || isPassed_) inPlace_ = false;
    fill();
  }
  std::string text() const {
    return std::string(kindNames[kind_]) + " " + std::to_string(id_) + " of " + std::to_string(count_) + " on " +
           std::to_string(ranks_) + " ranks" + (inPlace_ ? " in place" : "");
  }

  bool isTaken() const override { return isTacc_ && !isPassed_ && ranks_ > 1; }

  void fill() override {
    const std::size_t many = count_ * static_cast<std::size_t>(ranks_);
    // Buffers of no length have addresses too: Open MPI 4.1 takes two that are null for one in MPIX_Reduce_init.
    send_.reserve(many + 1);
    receive_.reserve(many + 1);
    send_.assign(many, 0);
    receive_.assign(many, -1);
    expected_.assign(many, -1);
    for (std::size_t i = 0; i < many; ++i) send_[i] = number(id_, rank_, i);
    const auto sum = [&](std::size_t i) {
      int all = 0;
      for (int rank = 0; rank < ranks_; ++rank) all += number(id_, rank, i);
      return all;
    };
    const std::size_t own = count_ * static_cast<std::size_t>(rank_);
    const bool isRoot = rank_ == root_;
    switch (kind_) {
      case 0:
        for (std::size_t i = 0; i < count_; ++i) expected_[i] = sum(i);
        if (inPlace_) std::copy_n(send_.begin(), count_, receive_.begin());
        break;
      case 1:
        for (std::size_t i = 0; i < count_; ++i) expected_[i] = number(id_, root_, i);
        if (isRoot) receive_ = expected_;
        break;
      case 2:
        for (std::size_t i = 0; isRoot && i < count_; ++i) expected_[i] = sum(i);
        break;
      case 3:
        if (inPlace_) receive_ = expected_ = send_;
        for (std::size_t i = 0; i < count_; ++i) expected_[i] = sum(own + i);
        break;
      case 4:
      case 6:
        for (std::size_t i = 0; (kind_ == 4 || isRoot) && i < many; ++i)
          expected_[i] = number(id_, static_cast<int>(i / count_), i % count_);
        if (inPlace_ && (kind_ == 4 || isRoot))
          std::copy_n(send_.begin(), count_, receive_.begin() + static_cast<std::ptrdiff_t>(own));
        break;
      case 5:
        for (std::size_t i = 0; i < many; ++i)
          expected_[i] = number(id_, static_cast<int>(i / count_), own + i % count_);
        break;
      case 7:
        for (std::size_t i = 0; i < count_; ++i) expected_[i] = number(id_, root_, own + i);
        if (inPlace_ && isRoot) expected_ = receive_;
        break;
      default:
        break;
    }
  }

  MPI_Request begin() override {
    MPI_Request request = MPI_REQUEST_NULL;
    const Given g = given();
    int code = MPI_SUCCESS;
    switch (kind_) {
      case 0:
        BEGIN(Iallreduce, g.send, receive_.data(), g.count, MPI_INT, g.op);
        break;
      case 1:
        BEGIN(Ibcast, receive_.data(), g.elements, g.type, root_);
        break;
      case 2:
        BEGIN(Ireduce, g.send, receive_.data(), g.count, MPI_INT, g.op, root_);
        break;
      case 3:
        BEGIN(Ireduce_scatter_block, g.send, receive_.data(), g.count, MPI_INT, g.op);
        break;
      case 4:
        BEGIN(Iallgather, g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type);
        break;
      case 5:
        BEGIN(Ialltoall, g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type);
        break;
      case 6:
        BEGIN(Igather, g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type, root_);
        break;
      case 7:
        BEGIN(Iscatter, send_.data(), g.count, MPI_INT, g.receive, g.elements, g.type, root_);
        break;
      default:
        code = MPI_Ibarrier(comm_, &request);
    }
    if (code != MPI_SUCCESS) complain(text() + " returns " + std::to_string(code));
    return request;
  }

#ifdef PERSISTENT
  MPI_Request makePersistent() override {
    MPI_Request request = MPI_REQUEST_NULL;
    const Given g = given();
    MPI_Info none = MPI_INFO_NULL;
    switch (kind_) {
      case 0:
        MAKE(Allreduce_init, g.send, receive_.data(), g.count, MPI_INT, g.op);
        break;
      case 1:
        MAKE(Bcast_init, receive_.data(), g.elements, g.type, root_);
        break;
      case 2:
        MAKE(Reduce_init, g.send, receive_.data(), g.count, MPI_INT, g.op, root_);
        break;
      case 3:
        MAKE(Reduce_scatter_block_init, g.send, receive_.data(), g.count, MPI_INT, g.op);
        break;
      case 4:
        MAKE(Allgather_init, g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type);
        break;
      case 5:
        MAKE(Alltoall_init, g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type);
        break;
      case 6:
        MAKE(Gather_init, g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type, root_);
        break;
      case 7:
        MAKE(Scatter_init, send_.data(), g.count, MPI_INT, g.receive, g.elements, g.type, root_);
        break;
      default:
        PERSISTENT(Barrier_init)(comm_, none, &request);
    }
    return request;
  }
#endif

  void check() const override {
    // In place MPI may leave anything behind the block.
    const std::size_t checked = kind_ == 3 && inPlace_ ? count_ : receive_.size();
    for (std::size_t i = 0; i < checked; ++i)
      if (receive_[i] != expected_[i])
        complain(text() + ": number " + std::to_string(i) + " is " + std::to_string(receive_[i]) + " and not " +
                 std::to_string(expected_[i]));
  }

 private:
  struct Given {
    const void* send;
    void* receive;
    int count, elements;
    MPI_Datatype type;  // what `elements` are of
    MPI_Op op;
  };
  Given given() {
    // A rank with another type that has the same numbers.
    const bool isPair = rank_ % 2 == 1;
    const bool isRoot = rank_ == root_;
    const int count = static_cast<int>(count_);
    const bool sendsInPlace = inPlace_ && (kind_ != 6 || isRoot) && kind_ != 7;
    return {sendsInPlace ? MPI_IN_PLACE : send_.data(),
            inPlace_ && kind_ == 7 && isRoot ? MPI_IN_PLACE : receive_.data(),
            count,
            isPair ? count / 2 : count,
            isPair ? pairType() : MPI_INT,
            isPassed_ ? sumOfTheProgram() : MPI_SUM};
  }
  MPI_Comm comm_;
  int id_, kind_, root_;
  std::size_t count_;
  bool inPlace_, isPassed_ = false, isTacc_, isLarge_;
  int rank_ = 0, ranks_ = 1;
  std::vector<int> send_, receive_, expected_;
};

}  // namespace tacc::test
