// What a taccEasgd_t points to: a session, the communicator that it uses, and the thread in which exchanges run beside
// the program.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/handles.hpp"
#include "api/stream.hpp"
#include "easgd/session.hpp"
#include "tacc/easgd.h"

namespace tacc {

/// In a separate stream, in turn with the program's calls on the communicator.
class StreamBackground final : public Background {
 public:
  explicit StreamBackground(taccComm& comm) : comm_(&comm) {}
  void start(std::function<void(Communicator&)> calls) override;
  void wait() override;
  void waitForStreams() override { comm_->waitForStreams(); }

 private:
  CommReference comm_;
  StreamPointer stream_;  // from the first start() on
};

/// A communicator of one rank, for a worker that is in no other.
class LoneCommunicator {
 public:
  LoneCommunicator();
  LoneCommunicator(const LoneCommunicator&) = delete;
  LoneCommunicator& operator=(const LoneCommunicator&) = delete;
  ~LoneCommunicator();

  taccComm& comm() const noexcept { return *comm_; }

 private:
  taccComm_t comm_;
};

/// Library memory in which a model's tensors lie one behind the other.
class PackedTensors {
 public:
  /// `counts`: elements of each.
  explicit PackedTensors(std::span<const std::size_t> counts);
  PackedTensors(const PackedTensors&) = delete;
  PackedTensors& operator=(const PackedTensors&) = delete;
  ~PackedTensors();

  /// Elements of all tensors, with the gaps between them.
  std::size_t count() const noexcept { return count_; }
  float* weights() const noexcept { return weights_; }
  float* gradients() const noexcept { return gradients_; }
  std::size_t tensors() const noexcept { return offsets_.size(); }
  std::size_t offset(std::size_t tensor) const { return offsets_[tensor]; }

 private:
  std::vector<std::size_t> offsets_;
  std::size_t count_ = 0;
  float* weights_ = nullptr;
  float* gradients_ = nullptr;
};

}  // namespace tacc

struct taccEasgd {
 public:
  /// Collective; the program's thread is inside `comm`.
  taccEasgd(taccComm& comm, const tacc::EasgdSettings& settings, float* weights, std::size_t count);
  taccEasgd(taccComm& comm, const tacc::EasgdSettings& settings, std::unique_ptr<tacc::PackedTensors> tensors);

  /// Local: in no communicator of the program's.
  taccEasgd(std::unique_ptr<tacc::LoneCommunicator> lone, const tacc::EasgdSettings& settings, float* weights,
            std::size_t count);

  taccComm& comm() const noexcept { return *comm_; }
  tacc::EasgdSession& session() noexcept { return session_; }
  /// Null where the program has its own memory.
  const tacc::PackedTensors* tensors() const noexcept { return tensors_.get(); }
  float* weights() const noexcept { return weights_; }

 private:
  std::unique_ptr<tacc::LoneCommunicator> lone_;  // null: the communicator is the program's
  tacc::CommReference comm_;
  std::unique_ptr<tacc::PackedTensors> tensors_;
  float* weights_;
  tacc::StreamBackground background_;
  tacc::EasgdSession session_;
};

namespace tacc {

/// Handles are found in a table, as streams are.
taccEasgd_t keepEasgd(std::shared_ptr<taccEasgd> made);
/// Fails when the handle is none.
std::shared_ptr<taccEasgd> requireEasgd(taccEasgd_t handle);
/// requireEasgd(), taking it out of the table.
std::shared_ptr<taccEasgd> removeEasgd(taccEasgd_t handle);

}  // namespace tacc
