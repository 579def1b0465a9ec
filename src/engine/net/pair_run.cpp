#include "engine/net/pair_run.hpp"

#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/types.hpp"

namespace tacc {
namespace {

/// True as long as it lives.
class Raised {
 public:
  explicit Raised(bool& flag) : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  bool& flag_;
};

}  // namespace

PairRun::PairRun(NetworkPeers& peers, NetworkWait& wait, int rank, std::vector<int> onHost, InsideHost insideHost)
    : wait_(wait), pairs_(peers, rank), rank_(rank), onHost_(std::move(onHost)), insideHost_(std::move(insideHost)) {}

void PairRun::run(std::span<const PointToPoint> operations) {
  sort(operations);
  copyOwn();
  const Raised raised(isRunning_);
  wait_.guard(&pairs_, [this] { pairs_.start(far_); });
  if (!near_.empty()) insideHost_(near_);
  if (!far_.empty()) wait_.run(pairs_, [this] { return pairs_.isFinished(); });
}

void PairRun::sort(std::span<const PointToPoint> operations) {
  for (std::vector<PointToPoint>* list : {&near_, &far_, &ownSends_, &ownReceives_}) list->clear();
  for (const PointToPoint& o : operations) {
    const int local = onHost_[at(o.peer)];
    if (local < 0) {
      far_.push_back(o);
    } else if (insideHost_) {
      near_.push_back(o);
      near_.back().peer = local;
    } else {
      (o.isSend ? ownSends_ : ownReceives_).push_back(o);
    }
  }
}

void PairRun::copyOwn() const {
  if (ownSends_.size() != ownReceives_.size())
    fail(taccInvalidUsage, "rank {} sends itself {} messages and receives {} of them in one group", rank_,
         ownSends_.size(), ownReceives_.size());
  for (std::size_t i = 0; i < ownSends_.size(); ++i) {
    const PointToPoint &from = ownSends_[i], &to = ownReceives_[i];
    if (from.count != to.count || from.type != to.type)
      fail(taccInvalidUsage, "rank {} receives {} {} from itself, and sends {} {}", rank_, to.count, nameOf(to.type),
           from.count, nameOf(from.type));
    if (from.count > 0) std::memmove(to.buffer, from.buffer, from.count * sizeOf(from.type));
  }
}

}  // namespace tacc
