#include "easgd/rooted.hpp"

#include <algorithm>

#include "easgd/local_step.hpp"
#include "easgd/wire.hpp"

namespace tacc {

RootedExchange::RootedExchange(const ExchangeParts& parts)
    : parts_(parts),
      center_(parts.communicator.rank() == 0 ? parts.count : 0),
      piece_(std::min(pieceElements, parts.count)),
      sum_(piece_.size()) {}

void RootedExchange::start() {
  if (isRoot()) std::copy_n(parts_.weights, parts_.count, center_.data());
}

void RootedExchange::readCenter(float* to) {
  if (isRoot()) std::copy_n(center_.data(), parts_.count, to);
  parts_.communicator.run({.collective = Collective::broadcast,
                           .send = isRoot() ? to : nullptr,
                           .receive = to,
                           .count = parts_.count,
                           .type = taccFloat32});
}

void RootedExchange::pull(const LocalStep& step, float alpha, std::size_t first, std::size_t count, const float* theirs,
                          float* difference) const {
  forEachTile(0, count, [&](std::size_t at, std::size_t n) {
    if (parts_.settings.checksFinite) checkFinite(parts_.weights, first + at, n);
    updateKernels().differ(difference + at, parts_.weights + first + at, theirs + at, alpha, n);
    step.apply(first + at, n, difference + at);
  });
}

void RoundRobinExchange::exchange(const LocalStep& step, float alpha) {
  const Wire exact(taccEasgdWire32);
  Communicator& communicator = parts_.communicator;
  const auto swap = [&](int peer, float* send, float* receive, std::size_t count) {
    const PointToPoint both[] = {{true, peer, send, count, taccFloat32}, {false, peer, receive, count, taccFloat32}};
    communicator.exchange(both);
  };
  for (std::size_t first = 0; isRoot() && first < parts_.count; first += pieceElements) {
    const std::size_t n = pieceAt(first);
    pull(step, alpha, first, n, center_.data() + first, piece_.data());
    exact.add(center_.data() + first, piece_.data(), 0, n);
  }
  for (int turn = 1; turn < communicator.ranks(); ++turn) {
    for (std::size_t first = 0; first < parts_.count; first += pieceElements) {
      const std::size_t n = pieceAt(first);
      if (isRoot()) {
        float* const center = center_.data() + first;
        swap(turn, center, piece_.data(), n);
        updateKernels().differ(sum_.data(), piece_.data(), center, alpha, n);
        exact.add(center, sum_.data(), 0, n);
      } else if (communicator.rank() == turn) {
        swap(0, parts_.weights + first, piece_.data(), n);
        pull(step, alpha, first, n, piece_.data(), sum_.data());
      }
    }
    // The papers' rule: rank i + 1 waits for rank i.
    communicator.run({.collective = Collective::barrier});
  }
}

void CenterTreeExchange::exchange(const LocalStep& step, float alpha) {
  const Wire exact(taccEasgdWire32);
  Communicator& communicator = parts_.communicator;
  for (std::size_t first = 0; first < parts_.count; first += pieceElements) {
    const std::size_t n = pieceAt(first);
    float* const center = isRoot() ? center_.data() + first : piece_.data();
    communicator.run({.collective = Collective::broadcast,
                      .send = isRoot() ? center : nullptr,
                      .receive = center,
                      .count = n,
                      .type = taccFloat32});
    pull(step, alpha, first, n, center, sum_.data());
    communicator.run({.collective = Collective::reduce,
                      .send = sum_.data(),
                      .receive = isRoot() ? sum_.data() : nullptr,
                      .count = n,
                      .type = taccFloat32,
                      .op = taccSum});
    if (isRoot()) exact.add(center, sum_.data(), 0, n);
  }
}

}  // namespace tacc
