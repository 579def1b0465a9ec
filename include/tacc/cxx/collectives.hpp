/* The calls on a communicator. Part of tacc/tacc.hpp. */
#ifndef TACC_CXX_COLLECTIVES_HPP
#define TACC_CXX_COLLECTIVES_HPP

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "tacc/cxx/element.hpp"
#include "tacc/cxx/error.hpp"

namespace taccxx {

/// An operator of a communicator that multiplies this rank's input by this rank's factor, and sums. Ends before the
/// communicator does.
class PreMulSum {
 public:
  /// Multiplies this rank's input by `factor`.
  template <Element T>
  PreMulSum(taccComm_t comm, T factor) : comm_(comm) {
    check(taccRedOpCreatePreMulSum(&op_, &factor, ElementType<T>::value, taccScalarHostImmediate, comm));
  }
  /// Takes what `other` has.
  PreMulSum(PreMulSum&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)), op_(other.op_) {}
  /// Exchanges what both have.
  PreMulSum& operator=(PreMulSum&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(op_, other.op_);
    return *this;
  }
  ~PreMulSum() {
    if (comm_ != nullptr) static_cast<void>(taccRedOpDestroy(op_, comm_));
  }
  /// The operator of the C interface.
  operator taccRedOp_t() const noexcept { return op_; }

 private:
  taccComm_t comm_;
  taccRedOp_t op_ = taccSum;
};

/// Lengths of blocks, an element for each rank, and where they begin; `places` empty: one behind the other.
struct BlockCounts {
  /// Elements of each block.
  std::span<const std::size_t> counts;
  /// Where each begins, in elements.
  std::span<const std::size_t> places = {};
};

/// A reduction of the program on a communicator, see taccRedOpCreateUser. Ends before the communicator does.
class UserReduction {
 public:
  /// As taccRedOpCreateUser.
  UserReduction(taccComm_t comm, taccReductionFunction function, void* context, bool isCommutative) : comm_(comm) {
    check(taccRedOpCreateUser(&op_, function, context, isCommutative ? 1 : 0, comm));
  }
  /// Takes what `other` has.
  UserReduction(UserReduction&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)), op_(other.op_) {}
  /// Exchanges what both have.
  UserReduction& operator=(UserReduction&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(op_, other.op_);
    return *this;
  }
  ~UserReduction() {
    if (comm_ != nullptr) static_cast<void>(taccRedOpDestroy(op_, comm_));
  }
  /// The operator of the C interface.
  operator taccRedOp_t() const noexcept { return op_; }

 private:
  taccComm_t comm_;
  taccRedOp_t op_ = taccSum;
};

/// A communicator that somebody else owns, and the calls on it: collectives, sends and receives, and what it is.
/// Buffers whose sizes do not fit are an Error with taccInvalidArgument before anything is sent. `stream` null: the
/// call is complete when it returns. Costs as much as its pointer.
class CommunicatorView {
 public:
  /// Of none.
  CommunicatorView() = default;
  /// Of `comm`, which it does not own.
  explicit CommunicatorView(taccComm_t comm) noexcept : comm_(comm) {}

  /// The handle of the C interface.
  taccComm_t get() const noexcept { return comm_; }
  /// The handle of the C interface.
  operator taccComm_t() const noexcept { return comm_; }
  /// Whether it is one of a communicator.
  explicit operator bool() const noexcept { return comm_ != nullptr; }

  /// Of the caller.
  int rank() const { return ask(taccCommUserRank); }
  /// Number of ranks.
  int size() const { return ask(taccCommCount); }
  /// Where this rank stands (taccCommGetNodeInfo).
  taccNodeInfo_t nodeInfo() const {
    taccNodeInfo_t info{};
    info.size = sizeof(info);
    check(taccCommGetNodeInfo(comm_, &info));
    return info;
  }
  /// What it is, for logs (taccCommGetInfo).
  taccCommInfo_t info() const {
    taccCommInfo_t info{};
    info.size = sizeof(info);
    check(taccCommGetInfo(comm_, &info));
    return info;
  }
  /// taccSuccess while it is usable, taccInProgress while it still joins, else what ended it. From any thread.
  taccResult_t asyncError() const {
    taccResult_t error = taccSuccess;
    check(taccCommGetAsyncError(comm_, &error));
    return error;
  }
  /// Of the last collective (taccCommLastAlgorithm).
  std::string lastAlgorithm() const { return taccCommLastAlgorithm(comm_); }
  /// Why a collective would run as it does (taccExplain).
  std::string explain(const std::string& collective, std::size_t bytes) const {
    const char* const text = taccExplain(comm_, collective.c_str(), bytes);
    if (text == nullptr) throw Error(taccInvalidArgument, taccGetLastError(nullptr));
    return text;
  }

  /// The reduction of all ranks' contributions, on all of them (taccAllReduce).
  template <Input S, Output R>
  requires SameElements<S, R>
  void allReduce(S&& send, R&& receive, taccRedOp_t op = taccSum, taccStream_t stream = nullptr) const {
    expect("allReduce", "receive", count(receive), count(send));
    check(taccAllReduce(data(send), data(receive), count(send), elementTypeOf<S>, op, comm_, stream));
  }
  /// In place.
  template <Output R>
  void allReduce(R&& buffer, taccRedOp_t op = taccSum, taccStream_t stream = nullptr) const {
    allReduce(buffer, buffer, op, stream);
  }

  /// root's buffer becomes that of all ranks.
  template <Output R>
  void broadcast(R&& buffer, int root, taccStream_t stream = nullptr) const {
    check(taccBcast(data(buffer), count(buffer), elementTypeOf<R>, root, comm_, stream));
  }
  /// `send` is used on root only, and may be empty elsewhere.
  template <Input S, Output R>
  requires SameElements<S, R>
  void broadcast(S&& send, R&& receive, int root, taccStream_t stream = nullptr) const {
    if (rank() == root) expect("broadcast", "send", count(send), count(receive));
    check(taccBroadcast(data(send), data(receive), count(receive), elementTypeOf<S>, root, comm_, stream));
  }

  /// `receive` is used on root only, and may be empty elsewhere.
  template <Input S, Output R>
  requires SameElements<S, R>
  void reduce(S&& send, R&& receive, int root, taccRedOp_t op = taccSum, taccStream_t stream = nullptr) const {
    if (rank() == root) expect("reduce", "receive", count(receive), count(send));
    check(taccReduce(data(send), data(receive), count(send), elementTypeOf<S>, op, root, comm_, stream));
  }

  /// `receive` has a block for each rank.
  template <Input S, Output R>
  requires SameElements<S, R>
  void allGather(S&& send, R&& receive, taccStream_t stream = nullptr) const {
    expect("allGather", "receive", count(receive), blocks(count(send)));
    check(taccAllGather(data(send), data(receive), count(send), elementTypeOf<S>, comm_, stream));
  }

  /// `send` has a block for each rank.
  template <Input S, Output R>
  requires SameElements<S, R>
  void reduceScatter(S&& send, R&& receive, taccRedOp_t op = taccSum, taccStream_t stream = nullptr) const {
    expect("reduceScatter", "send", count(send), blocks(count(receive)));
    check(taccReduceScatter(data(send), data(receive), count(receive), elementTypeOf<S>, op, comm_, stream));
  }

  /// Both have a block for each rank.
  template <Input S, Output R>
  requires SameElements<S, R>
  void allToAll(S&& send, R&& receive, taccStream_t stream = nullptr) const {
    const std::size_t block = count(send) / static_cast<std::size_t>(size());
    expect("allToAll", "send", count(send), blocks(block));
    expect("allToAll", "receive", count(receive), count(send));
    check(taccAllToAll(data(send), data(receive), block, elementTypeOf<S>, comm_, stream));
  }

  /// `receive` has a block for each rank on root, and may be empty elsewhere.
  template <Input S, Output R>
  requires SameElements<S, R>
  void gather(S&& send, R&& receive, int root, taccStream_t stream = nullptr) const {
    if (rank() == root) expect("gather", "receive", count(receive), blocks(count(send)));
    check(taccGather(data(send), data(receive), count(send), elementTypeOf<S>, root, comm_, stream));
  }

  /// `send` has a block for each rank on root, and may be empty elsewhere.
  template <Input S, Output R>
  requires SameElements<S, R>
  void scatter(S&& send, R&& receive, int root, taccStream_t stream = nullptr) const {
    if (rank() == root) expect("scatter", "send", count(send), blocks(count(receive)));
    check(taccScatter(data(send), data(receive), count(receive), elementTypeOf<S>, root, comm_, stream));
  }

  /// What the ranks up to this one give, in their order. In place where both are one.
  template <Input S, Output R>
  requires SameElements<S, R>
  void scan(S&& send, R&& receive, taccRedOp_t op = taccSum, taccStream_t stream = nullptr) const {
    expect("scan", "receive", count(receive), count(send));
    check(taccScan(data(send), data(receive), count(send), elementTypeOf<S>, op, comm_, stream));
  }
  /// The same without this one; `receive` of rank 0 stays as it is.
  template <Input S, Output R>
  requires SameElements<S, R>
  void exscan(S&& send, R&& receive, taccRedOp_t op = taccSum, taccStream_t stream = nullptr) const {
    expect("exscan", "receive", count(receive), count(send));
    check(taccExscan(data(send), data(receive), count(send), elementTypeOf<S>, op, comm_, stream));
  }

  // With a count for each rank. Buffers must hold all blocks.

  /// All ranks' blocks, on all of them (taccAllGatherV).
  template <Input S, Output R>
  requires SameElements<S, R>
  void allGatherV(S&& send, R&& receive, const BlockCounts& received, taccStream_t stream = nullptr) const {
    expectBlocks("allGatherV", "receive", count(receive), received);
    expect("allGatherV", "send", count(send), received.counts[static_cast<std::size_t>(rank())]);
    check(taccAllGatherV(data(send), data(receive), received.counts.data(), places(received), elementTypeOf<S>, comm_,
                         stream));
  }
  /// Each rank gets its block of the reduction (taccReduceScatterV).
  template <Input S, Output R>
  requires SameElements<S, R>
  void reduceScatterV(S&& send, R&& receive, const BlockCounts& sent, taccRedOp_t op = taccSum,
                      taccStream_t stream = nullptr) const {
    expectBlocks("reduceScatterV", "send", count(send), sent);
    expect("reduceScatterV", "receive", count(receive), sent.counts[static_cast<std::size_t>(rank())]);
    check(taccReduceScatterV(data(send), data(receive), sent.counts.data(), places(sent), elementTypeOf<S>, op, comm_,
                             stream));
  }
  /// `receive` and `received` are used on root only, and may be empty elsewhere.
  template <Input S, Output R>
  requires SameElements<S, R>
  void gatherV(S&& send, R&& receive, const BlockCounts& received, int root, taccStream_t stream = nullptr) const {
    if (rank() == root) expectBlocks("gatherV", "receive", count(receive), received);
    check(taccGatherV(data(send), count(send), data(receive), received.counts.data(), places(received),
                      elementTypeOf<S>, root, comm_, stream));
  }
  /// `send` and `sent` are used on root only, and may be empty elsewhere.
  template <Input S, Output R>
  requires SameElements<S, R>
  void scatterV(S&& send, const BlockCounts& sent, R&& receive, int root, taccStream_t stream = nullptr) const {
    if (rank() == root) expectBlocks("scatterV", "send", count(send), sent);
    check(taccScatterV(data(send), sent.counts.data(), places(sent), data(receive), count(receive), elementTypeOf<S>,
                       root, comm_, stream));
  }
  /// Every rank sends every rank a block (taccAllToAllV).
  template <Input S, Output R>
  requires SameElements<S, R>
  void allToAllV(S&& send, const BlockCounts& sent, R&& receive, const BlockCounts& received,
                 taccStream_t stream = nullptr) const {
    expectBlocks("allToAllV", "send", count(send), sent);
    expectBlocks("allToAllV", "receive", count(receive), received);
    check(taccAllToAllV(data(send), sent.counts.data(), places(sent), data(receive), received.counts.data(),
                        places(received), elementTypeOf<S>, comm_, stream));
  }

  /// Returns when all ranks have entered it.
  void barrier(taccStream_t stream = nullptr) const { check(taccBarrier(comm_, stream)); }

  /// To rank `peer` (taccSend).
  template <Input S>
  void send(S&& buffer, int peer, taccStream_t stream = nullptr) const {
    check(taccSend(data(buffer), count(buffer), elementTypeOf<S>, peer, comm_, stream));
  }
  /// From rank `peer` (taccRecv).
  template <Output R>
  void recv(R&& buffer, int peer, taccStream_t stream = nullptr) const {
    check(taccRecv(data(buffer), count(buffer), elementTypeOf<R>, peer, comm_, stream));
  }

 protected:
  /// What it is a view of.
  taccComm_t comm_ = nullptr;

 private:
  int ask(taccResult_t (*question)(taccComm_t, int*)) const {
    int answer = 0;
    check(question(comm_, &answer));
    return answer;
  }
  static auto* data(auto&& buffer) { return std::ranges::data(buffer); }
  static std::size_t count(auto&& buffer) { return static_cast<std::size_t>(std::ranges::size(buffer)); }
  std::size_t blocks(std::size_t block) const { return block * static_cast<std::size_t>(size()); }

  static const std::size_t* places(const BlockCounts& blocks) {
    return blocks.places.empty() ? nullptr : blocks.places.data();
  }
  void expectBlocks(const char* call, const char* buffer, std::size_t found, const BlockCounts& blocks) const {
    expect(call, "counts", blocks.counts.size(), static_cast<std::size_t>(size()));
    if (!blocks.places.empty()) expect(call, "places", blocks.places.size(), blocks.counts.size());
    std::size_t end = 0, behind = 0;
    for (std::size_t r = 0; r < blocks.counts.size(); ++r) {
      behind = (blocks.places.empty() ? behind : blocks.places[r]) + blocks.counts[r];
      if (blocks.counts[r] != 0 && behind > end) end = behind;
    }
    if (found < end) expect(call, buffer, found, end);
  }

  static void expect(const char* call, const char* buffer, std::size_t found, std::size_t wanted) {
    if (found == wanted) [[likely]]
      return;
    throw Error(taccInvalidArgument, std::string("taccxx::Communicator::") + call + ": `" + buffer + "` has " +
                                         std::to_string(found) + " elements; it must have " + std::to_string(wanted));
  }
};

}  // namespace taccxx

#endif
