// What communicators of nodes and of clusters have in common: the record of their operations, and that their ranks
// joined one by one, so that they can do so again when some are lost.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "comm/flight_recorder.hpp"
#include "comm/muster.hpp"
#include "engine/signature.hpp"

namespace tacc {

class JoinedCommunicator : public Communicator {
 public:
  void run(const Call& call) final {
    recorder_.begin(makeSignature(call.collective, call.type, call.factor != nullptr ? preMulSumCode : call.op,
                                  call.root, call.count));
    try {
      runNow(call);
    } catch (const Error& error) {
      recorder_.fail(error.result(), error.what());
      throw;
    }
    recorder_.end();
  }
  void exchange(std::span<const PointToPoint> operations) final {
    recorder_.begin(0);
    try {
      exchangeNow(operations);
    } catch (const Error& error) {
      recorder_.fail(error.result(), error.what());
      throw;
    }
    recorder_.end();
  }
  /// The same without a record: for calls of the library's own.
  virtual void runNow(const Call& call) = 0;
  virtual void exchangeNow(std::span<const PointToPoint> operations) = 0;

  std::unique_ptr<Communicator> shrink(std::span<const int> excluded, const CommConfig& config) final;
  /// Null among threads, and for a single rank.
  void setMuster(std::unique_ptr<Muster> muster) noexcept { muster_ = std::move(muster); }

 protected:
  /// `trace`: TACC_TRACE.
  JoinedCommunicator(int rank, int ranks, CommConfig config, std::string trace)
      : Communicator(rank, ranks, std::move(config)), recorder_(rank, std::move(trace)) {}

 private:
  FlightRecorder recorder_;
  std::unique_ptr<Muster> muster_;
};

}  // namespace tacc
