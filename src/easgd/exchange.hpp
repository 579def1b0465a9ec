// How ranks meet the center: the interface that every mode of EASGD implements, and what it is given.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.hpp"
#include "easgd/local_step.hpp"
#include "easgd/settings.hpp"

namespace tacc {

/// Runs calls on a communicator beside the program, one lot at a time.
class Background {
 public:
  virtual ~Background() = default;
  virtual void start(std::function<void(Communicator&)> calls) = 0;
  /// Waits until they are over. Throws what ended them.
  virtual void wait() = 0;
  /// Waits until all is over that any thread has given to streams of this communicator.
  virtual void waitForStreams() = 0;
};

/// What a mode works on. All of it outlives the mode.
struct ExchangeParts {
  Communicator& communicator;
  Background& background;
  const EasgdSettings& settings;
  float* weights;  // this rank's
  std::size_t count;
  std::size_t offset = 0;  // of weights[0] in the model, for messages
};

/// `alpha` is that of the equations in tacc/easgd.h.
class CenterExchange {
 public:
  virtual ~CenterExchange() = default;

  /// How many have weights that differ: ranks, or groups of ranks with the same weights.
  virtual int parts() const noexcept = 0;
  /// Collective. The weights, which are equal on all ranks, become the center.
  virtual void start() = 0;
  /// One exchange, and the step behind it.
  virtual void exchange(const LocalStep& step, float alpha) = 0;
  /// A step without an exchange.
  virtual void stepAlone(const LocalStep& step, std::size_t count) {
    forEachTile(0, count, [&](auto first, auto n) { step.apply(first, n, nullptr); });
  }

  /// Whether that is a call on the communicator too.
  virtual bool stepsTogether() const noexcept { return false; }

  /// When begin() may be called: never, before the step with which the exchange ends, or after the last exchange.
  enum class Begins { never, beforeStep, afterExchange };
  virtual Begins begins() const noexcept { return Begins::never; }
  /// Begins an exchange in the background, and returns.
  virtual void begin(float alpha) { (void)alpha; }
  /// Ends what begin() began, with the step behind it.
  virtual void finish(const LocalStep& step, float alpha) { (void)step, (void)alpha; }

  /// The whole center. Collective, but in asynchronous modes.
  virtual void readCenter(float* to) = 0;
  /// What a rank has to keep beside weights and velocity to go on later, nothing being under way.
  virtual std::vector<std::span<float>> state() = 0;
  /// Collective: state() has been filled with what was kept.
  virtual void restore() {}
  /// Collective: this rank does no more exchanges.
  virtual void end() {}
  /// By which other workers come to the center of an asynchronous mode, one for each of its slices; none: they cannot.
  virtual std::span<const taccUniqueId> centerIds() const noexcept { return {}; }
  /// Updates of others that the center took since this rank's last exchange, in the mean; see taccEasgdInfo_t.
  virtual double staleness() const noexcept { return 0; }
  /// Seconds that begun exchanges took in the background.
  virtual double backgroundSeconds() const noexcept { return 0; }
};

}  // namespace tacc
