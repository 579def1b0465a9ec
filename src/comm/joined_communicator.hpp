// A communicator whose ranks joined one by one, so that they can do so again when some are lost.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "comm/communicator.hpp"
#include "comm/muster.hpp"

namespace tacc {

class JoinedCommunicator : public Communicator {
 public:
  std::unique_ptr<Communicator> shrink(std::span<const int> excluded, const CommConfig& config) final;
  /// Null among threads, and for a single rank.
  void setMuster(std::unique_ptr<Muster> muster) noexcept { muster_ = std::move(muster); }

 protected:
  using Communicator::Communicator;

 private:
  std::unique_ptr<Muster> muster_;
};

}  // namespace tacc
