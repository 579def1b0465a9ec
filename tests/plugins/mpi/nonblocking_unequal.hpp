// Drawn collectives that return a request: scans, and those with a count for each rank, in the forms with int and with
// large counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "nonblocking_collective.hpp"

namespace tacc::test {

/// Blocks stand in reverse order, with gaps. Some have no length.
class UnequalCollective : public Drawn {
 public:
  enum Kind { scan, exscan, reduceScatter, allgatherv, alltoallv, gatherv, scatterv, kindsOfThem };

  UnequalCollective(MPI_Comm comm, Draws& draws, int id, bool isTacc)
      : comm_(comm),
        id_(id),
        kind_(draws.upTo(kindsOfThem - 1)),
        least_(2 * (draws.count() / 2)),
        inPlace_(draws.upTo(2) == 0),
        isLarge_(draws.upTo(1) == 0) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &ranks_);
    root_ = draws.upTo(ranks_ - 1);
    isPassed_ = kind_ <= reduceScatter && draws.upTo(4) == 0;
    isTaken_ = isTacc && !isPassed_ && ranks_ > 1;
    if (!isTaken_) inPlace_ = false;
    receivePlaces_ = placesOf([&](int r) { return lengthOf(r, rank_); });
    sendPlaces_ = placesOf([&](int r) { return lengthOf(rank_, r); });
    if (kind_ == reduceScatter) receivePlaces_ = sendPlaces_;
    pairs_ = receivePlaces_;
    for (int& count : pairs_.counts) count /= 2;
    for (int& place : pairs_.places) place /= 2;
    fill();
  }

  bool isTaken() const override { return isTaken_; }

  void fill() override {
    const bool isRoot = rank_ == root_;
    const auto all = static_cast<std::size_t>(std::max(sendPlaces_.end, receivePlaces_.end)) + 1;
    send_.assign(all, -2);
    receive_.assign(all, -1);
    switch (kind_) {
      case scan:
      case exscan:
        for (std::size_t i = 0; i < length(); ++i) send_[i] = number(id_, rank_, i);
        if (inPlace_) std::copy_n(send_.begin(), length(), receive_.begin());
        expected_ = receive_;
        for (std::size_t i = 0; i < length() && (kind_ == scan || rank_ > 0); ++i)
          expected_[i] = sumOf(kind_ == scan ? rank_ + 1 : rank_, i);
        break;
      case reduceScatter:
        fillReduceScatter();
        break;
      case allgatherv:
      case gatherv:
        for (std::size_t i = 0; i < own(); ++i) send_[i] = number(id_, rank_, i);
        if (inPlace_ && (kind_ == allgatherv || isRoot)) put(receive_, receivePlaces_, rank_, rank_, 0);
        expected_ = receive_;
        for (int r = 0; r < ranks_ && (kind_ == allgatherv || isRoot); ++r) put(expected_, receivePlaces_, r, r, 0);
        break;
      case alltoallv:
        // In place a rank gives what stands where it receives.
        for (int r = 0; r < ranks_; ++r)
          put(inPlace_ ? receive_ : send_, inPlace_ ? receivePlaces_ : sendPlaces_, r, rank_, 100 * r);
        expected_ = receive_;
        for (int r = 0; r < ranks_; ++r) put(expected_, receivePlaces_, r, r, 100 * rank_);
        break;
      default:
        for (int r = 0; r < ranks_ && isRoot; ++r) put(send_, sendPlaces_, r, root_, 100 * r);
        expected_ = receive_;
        for (std::size_t i = 0; i < own() && !(inPlace_ && isRoot); ++i)
          expected_[i] = number(id_, root_, i) + 100 * rank_;
    }
  }

  MPI_Request begin() override {
    const Given g = given();
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    switch (kind_) {
      case scan:
        BEGIN(Iscan, g.send, receive_.data(), least_, MPI_INT, g.op);
        break;
      case exscan:
        BEGIN(Iexscan, g.send, receive_.data(), least_, MPI_INT, g.op);
        break;
      default:
        code = isLarge_ ? beginLarge(g, &request) : beginWith(g, sendPlaces_, receivedPlaces(), &request);
    }
    if (code != MPI_SUCCESS) complain(text() + " returns " + std::to_string(code));
    return request;
  }

#ifdef PERSISTENT
  MPI_Request makePersistent() override {
    const Given g = given();
    MPI_Info none = MPI_INFO_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (kind_) {
      case scan:
        MAKE(Scan_init, g.send, receive_.data(), least_, MPI_INT, g.op);
        break;
      case exscan:
        MAKE(Exscan_init, g.send, receive_.data(), least_, MPI_INT, g.op);
        break;
      default:
        isLarge_ ? makeLarge(g, &request) : makeWith(g, sendPlaces_, receivedPlaces(), &request);
    }
    return request;
  }
#endif

  void check() const override {
    // In place MPI may leave anything behind the block.
    const std::size_t checked = kind_ == reduceScatter && inPlace_ ? own() : receive_.size();
    for (std::size_t i = 0; i < checked; ++i)
      if (receive_[i] != expected_[i] && !(kind_ == exscan && rank_ == 0))  // which has no result
        complain(text() + ": number " + std::to_string(i) + " is " + std::to_string(receive_[i]) + " and not " +
                 std::to_string(expected_[i]));
  }

 private:
  /// Blocks of one buffer, in numbers. Of reduceScatter one after the other.
  struct Places {
    std::vector<int> counts, places;
    int end = 0;
  };
  template <class LengthOf>
  Places placesOf(const LengthOf& lengthOfBlock) const {
    Places found;
    found.counts.resize(static_cast<std::size_t>(ranks_));
    found.places.resize(static_cast<std::size_t>(ranks_));
    for (int i = 0; i < ranks_; ++i) {
      const int r = kind_ == reduceScatter ? i : ranks_ - 1 - i;
      found.counts[static_cast<std::size_t>(r)] = lengthOfBlock(r);
      found.places[static_cast<std::size_t>(r)] = found.end;
      found.end += lengthOfBlock(r) + (kind_ == reduceScatter ? 0 : 2);
    }
    return found;
  }

  /// What is received, as MPI is told it: odd ranks have elements of two.
  bool receivesPairs() const { return rank_ % 2 == 1 && kind_ != reduceScatter; }
  const Places& receivedPlaces() const { return receivesPairs() ? pairs_ : receivePlaces_; }
  MPI_Datatype receivedType() const { return receivesPairs() ? pairType() : MPI_INT; }

  /// From one rank to another; the same both ways, as in place it has to be. Even, for elements of two.
  int lengthOf(int from, int to) const {
    const int both = kind_ == alltoallv ? from + to : kind_ == scatterv || kind_ == reduceScatter ? to : from;
    return both % 3 == 1 ? 0 : least_ + 2 * both;
  }
  std::size_t length() const { return static_cast<std::size_t>(least_); }
  std::size_t own() const { return static_cast<std::size_t>(lengthOf(rank_, rank_)); }
  int sumOf(int ranks, std::size_t i) const {
    int all = 0;
    for (int r = 0; r < ranks; ++r) all += number(id_, r, i);
    return all;
  }
  /// Block `at` of `buffer` gets the numbers of rank `of`.
  void put(std::vector<int>& buffer, const Places& places, int at, int of, int more) const {
    const auto which = static_cast<std::size_t>(at);
    for (int i = 0; i < places.counts[which]; ++i)
      buffer[static_cast<std::size_t>(places.places[which] + i)] = number(id_, of, static_cast<std::size_t>(i)) + more;
  }
  void fillReduceScatter() {
    const auto all = static_cast<std::size_t>(sendPlaces_.end);
    for (std::size_t i = 0; i < all; ++i) send_[i] = number(id_, rank_, i);
    if (inPlace_) std::copy_n(send_.begin(), all, receive_.begin());
    expected_ = receive_;
    const auto before = static_cast<std::size_t>(sendPlaces_.places[static_cast<std::size_t>(rank_)]);
    for (std::size_t i = 0; i < own(); ++i) expected_[i] = sumOf(ranks_, before + i);
  }

  struct Given {
    const void* send;
    void* receive;
    int elements;  // of the own block
    MPI_Datatype type;
    MPI_Op op;
  };
  Given given() {
    const bool isPair = rank_ % 2 == (kind_ == scatterv ? 1 : 0), isRoot = rank_ == root_;
    const bool sendsInPlace = inPlace_ && (kind_ != gatherv || isRoot) && kind_ != scatterv;
    const auto ownLength = static_cast<int>(own());
    return {sendsInPlace ? MPI_IN_PLACE : send_.data(),
            inPlace_ && kind_ == scatterv && isRoot ? MPI_IN_PLACE : receive_.data(),
            isPair ? ownLength / 2 : ownLength, isPair ? pairType() : MPI_INT, isPassed_ ? sumOfTheProgram() : MPI_SUM};
  }

  /// Of those that have counts for each rank.
  int beginWith(const Given& g, const Places& from, const Places& to, MPI_Request* request) {
    int* const out = receive_.data();
    switch (kind_) {
      case reduceScatter:
        return MPI_Ireduce_scatter(g.send, out, to.counts.data(), MPI_INT, g.op, comm_, request);
      case allgatherv:
        return MPI_Iallgatherv(g.send, g.elements, g.type, out, to.counts.data(), to.places.data(), receivedType(),
                               comm_, request);
      case alltoallv:
        return MPI_Ialltoallv(g.send, from.counts.data(), from.places.data(), MPI_INT, out, to.counts.data(),
                              to.places.data(), receivedType(), comm_, request);
      case gatherv:
        return MPI_Igatherv(g.send, g.elements, g.type, out, to.counts.data(), to.places.data(), receivedType(), root_,
                            comm_, request);
      default:
        return MPI_Iscatterv(send_.data(), from.counts.data(), from.places.data(), MPI_INT, g.receive, g.elements,
                             g.type, root_, comm_, request);
    }
  }
  int beginLarge(const Given& g, MPI_Request* request) {
#if MPI_VERSION >= 4
    widen();
    int* const out = receive_.data();
    switch (kind_) {
      case reduceScatter:
        return MPI_Ireduce_scatter_c(g.send, out, large_[1].data(), MPI_INT, g.op, comm_, request);
      case allgatherv:
        return MPI_Iallgatherv_c(g.send, g.elements, g.type, out, large_[1].data(), far_[1].data(), receivedType(),
                                 comm_, request);
      case alltoallv:
        return MPI_Ialltoallv_c(g.send, large_[0].data(), far_[0].data(), MPI_INT, out, large_[1].data(),
                                far_[1].data(), receivedType(), comm_, request);
      case gatherv:
        return MPI_Igatherv_c(g.send, g.elements, g.type, out, large_[1].data(), far_[1].data(), receivedType(), root_,
                              comm_, request);
      default:
        return MPI_Iscatterv_c(send_.data(), large_[0].data(), far_[0].data(), MPI_INT, g.receive, g.elements, g.type,
                               root_, comm_, request);
    }
#else
    return beginWith(g, sendPlaces_, receivedPlaces(), request);
#endif
  }
#ifdef PERSISTENT
  int makeWith(const Given& g, const Places& from, const Places& to, MPI_Request* request) {
    int* const out = receive_.data();
    MPI_Info none = MPI_INFO_NULL;
    switch (kind_) {
      case reduceScatter:
        return PERSISTENT(Reduce_scatter_init)(g.send, out, to.counts.data(), MPI_INT, g.op, comm_, none, request);
      case allgatherv:
        return PERSISTENT(Allgatherv_init)(g.send, g.elements, g.type, out, to.counts.data(), to.places.data(),
                                           receivedType(), comm_, none, request);
      case alltoallv:
        return PERSISTENT(Alltoallv_init)(g.send, from.counts.data(), from.places.data(), MPI_INT, out,
                                          to.counts.data(), to.places.data(), receivedType(), comm_, none, request);
      case gatherv:
        return PERSISTENT(Gatherv_init)(g.send, g.elements, g.type, out, to.counts.data(), to.places.data(),
                                        receivedType(), root_, comm_, none, request);
      default:
        return PERSISTENT(Scatterv_init)(send_.data(), from.counts.data(), from.places.data(), MPI_INT, g.receive,
                                         g.elements, g.type, root_, comm_, none, request);
    }
  }
  int makeLarge(const Given& g, MPI_Request* request) {
#if MPI_VERSION >= 4
    widen();
    int* const out = receive_.data();
    MPI_Info none = MPI_INFO_NULL;
    switch (kind_) {
      case reduceScatter:
        return PERSISTENT(Reduce_scatter_init_c)(g.send, out, large_[1].data(), MPI_INT, g.op, comm_, none, request);
      case allgatherv:
        return PERSISTENT(Allgatherv_init_c)(g.send, g.elements, g.type, out, large_[1].data(), far_[1].data(),
                                             receivedType(), comm_, none, request);
      case alltoallv:
        return PERSISTENT(Alltoallv_init_c)(g.send, large_[0].data(), far_[0].data(), MPI_INT, out, large_[1].data(),
                                            far_[1].data(), receivedType(), comm_, none, request);
      case gatherv:
        return PERSISTENT(Gatherv_init_c)(g.send, g.elements, g.type, out, large_[1].data(), far_[1].data(),
                                          receivedType(), root_, comm_, none, request);
      default:
        return PERSISTENT(Scatterv_init_c)(send_.data(), large_[0].data(), far_[0].data(), MPI_INT, g.receive,
                                           g.elements, g.type, root_, comm_, none, request);
    }
#else
    return makeWith(g, sendPlaces_, receivedPlaces(), request);
#endif
  }
#endif
  /// MPI may read them until it is done.
  void widen() {
    const Places* const of[] = {&sendPlaces_, &receivedPlaces()};
    for (int i = 0; i < 2; ++i) {
      large_[i].assign(of[i]->counts.begin(), of[i]->counts.end());
      far_[i].assign(of[i]->places.begin(), of[i]->places.end());
    }
  }

  std::string text() const {
    static constexpr const char* names[] = {"scan",      "exscan",  "reduce_scatter", "allgatherv",
                                            "alltoallv", "gatherv", "scatterv"};
    return std::string(names[kind_]) + " " + std::to_string(id_) + " of " + std::to_string(least_) + " on " +
           std::to_string(ranks_) + " ranks" + (inPlace_ ? " in place" : "") + (isLarge_ ? ", large counts" : "");
  }

  MPI_Comm comm_;
  int id_, kind_, root_ = 0;
  int least_;  // numbers of a scan, and about as many of a block
  bool inPlace_, isLarge_, isPassed_ = false, isTaken_ = false;
  int rank_ = 0, ranks_ = 1;
  Places sendPlaces_, receivePlaces_, pairs_;
  std::vector<MPI_Count> large_[2];
  std::vector<MPI_Aint> far_[2];
  std::vector<int> send_, receive_, expected_;
};

}  // namespace tacc::test
