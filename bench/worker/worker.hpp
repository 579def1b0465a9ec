#pragma once

#include <memory>
#include <string>

#include "worker/channel.hpp"
#include "worker/contestant.hpp"
#include "worker/pattern.hpp"

namespace tacc::bench {

/// The most slots of a pool that calls move through: more would only make the caches cold for tiny calls.
inline constexpr size_t mostSlots = 256;

/// One rank at work: obeys the coordinator's commands until the channel closes. The measuring loop is here, the same
/// for all contestants.
class Worker {
 public:
  /// `contestant` outlives the worker.
  Worker(Contestant& contestant, Channel channel) : contestant_(contestant), channel_(std::move(channel)) {}
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Says hello and works. An exception from the contestant is told to the coordinator and ends the work. False then.
  bool serve();

 private:
  std::string obey(const std::string& line);
  void allocate(const std::string& arguments);
  void release();
  std::string prepare(const Task& task);
  Timing time(const Block& block);
  int64_t runAndCheckInPlace(const Block& block);
  void fillInputs(char* slot, size_t slotIndex, bool inPlace) const;
  int64_t countWrong(const char* received, size_t slotIndex) const;
  Call callAt(size_t slotIndex, const Block& block) const;

  Contestant& contestant_;
  Channel channel_;
  size_t poolBytes_ = 0;
  char* sendPool_ = nullptr;
  char* recvPool_ = nullptr;
  /// The task at hand. Each direction's pool is cut into slotCount_ slots; iteration i uses slot i modulo slotCount_,
  /// so that the data of a large call comes from memory and not from the cache.
  Task task_;
  Shape shape_;
  size_t slotBytes_ = 0;
  size_t slotCount_ = 1;
  size_t nextSlot_ = 0;
  std::unique_ptr<Pattern> pattern_;
};

/// The main part of a peer program: connects, serves, returns the exit status.
int serveCoordinator(Contestant& contestant, const std::string& address);

}  // namespace tacc::bench
