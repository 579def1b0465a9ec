// A worker whose center is at the other end of a connection.
#pragma once

#include <optional>

#include "comm/bootstrap/wait.hpp"
#include "easgd/center.hpp"
#include "easgd/center_entry.hpp"

namespace tacc {

class RemoteCenter final : public Center {
 public:
  RemoteCenter(CenterEntry entry, double timeout);

  void exchange(const float* weights, float alpha, const Sink& sink) override;
  void read(float* out) override;
  void write(const float* values) override;
  CenterCounts counts() override;
  std::uint64_t lastUpdate() const noexcept override { return lastUpdate_; }
  bool isRemote() const noexcept override { return true; }

 private:
  /// One operation: the requests of all pieces, `numbers` (null: none) with them, and onReply(reply, its numbers) in
  /// their order.
  template <class OnReply>
  void operate(CenterAction action, std::size_t pieces, const float* numbers, float alpha, const OnReply& onReply);
  CenterRequest request(CenterAction action, std::size_t piece, std::size_t pieces, float alpha) const noexcept;
  Deadline silenceEnds() const;
  void ask(const CenterRequest& request, const float* numbers);
  /// The next message of this operation that has come.
  std::optional<Message> nextMessage();
  void await(const Deadline& deadline);
  [[noreturn]] void failSilent();
  [[noreturn]] void loseLink();
  [[noreturn]] void lose(const Error& error);

  CenterLink link_;
  double timeout_;
  Interrupt interrupt_{0};
  std::uint32_t operation_ = 0;
  std::optional<Error> lost_;  // why nothing can be done any more
  std::uint64_t ownUpdates_ = 0, bytes_ = 0, lastUpdate_ = 0;
  CenterReply last_{};  // of the last operation
};

}  // namespace tacc
