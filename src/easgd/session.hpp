// One rank's end of a training by EASGD: weights, velocity, the schedule of exchanges, and what they cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "easgd/exchange.hpp"
#include "easgd/float_buffer.hpp"

namespace tacc {

class EasgdSession {
 public:
  /// Collective. Fails on all ranks with both values where counts or settings differ.
  EasgdSession(Communicator& communicator, Background& background, const EasgdSettings& settings, float* weights,
               std::size_t count);

  std::size_t count() const noexcept { return count_; }

  /// Collective; before the end of a session whose communicator is still good.
  void end() { mode_->end(); }
  /// Fails in a mode that has no center for others to come to.
  std::span<const taccUniqueId> centerIds() const;

  void start();
  void step(const float* gradient);
  void exchange();
  void readCenter(float* to);
  void setRate(float rate);
  taccEasgdInfo_t info() const noexcept;
  void save(const std::string& path);
  void load(const std::string& path);

 private:
  /// Ranks, or groups of them that move together.
  int parts() const noexcept { return parts_; }
  LocalStep localStep(const float* gradient) noexcept;
  void stepNow(const float* gradient);
  void beginNext();
  /// Waits for what is under way in the background.
  void quiesce();
  void requireStarted(const char* what) const;
  /// Times what the program waits for.
  template <class Work>
  void timed(const Work& work);
  /// Whatever ends a step on this rank is told to all that would wait for it.
  template <class Work>
  void forAll(const Work& work);

  Communicator& communicator_;
  Background& background_;
  EasgdSettings settings_;
  float* weights_;
  std::size_t count_;
  FloatBuffer velocity_;
  std::unique_ptr<CenterExchange> mode_;
  int parts_ = 1;
  bool isStarted_ = false;
  bool hasBegun_ = false;  // an exchange, which the next one that is due ends
  std::uint64_t steps_ = 0;
  std::uint64_t exchanges_ = 0;
  double waitSeconds_ = 0;
};

}  // namespace tacc
