// In pieces of what size a long message goes to the kernel. Between processes of one machine the kernel copies faster
// in small pieces where the two cores share a cache, and in large ones where they do not: up to twice as fast, both
// ways. A virtual machine's cores do both within minutes, so it is measured, on the messages that are sent anyway, by
// each sender alone: the receiver takes pieces of any size up to the longest. Where large ones are faster they are so
// only after a while, and then small ones are as fast for a while; so the large ones are the first, and stay unless the
// small ones are clearly faster.
#pragma once

#include <array>
#include <cstddef>

namespace tacc {

class SegmentChoice {
 public:
  /// A piece that is longer than a core's own cache, 1 MiB where this was measured, lost a quarter.
  static constexpr std::array<std::size_t, 2> sizes = {512 << 10, 2 << 20};
  static constexpr std::size_t longest = sizes.back();  // shorter messages are one piece anyway

  struct Message {
    std::size_t segment = longest;
    bool isTimed = false;
  };

  /// For the next message.
  Message next() noexcept;
  /// It took `seconds`, those before it not counted.
  void note(const Message& message, std::size_t bytes, double seconds) noexcept;

 private:
  /// A trial is some messages of each size, twice, and comes back: of 100 messages about 1.2 go the slower way.
  static constexpr int blocks = 2 * static_cast<int>(sizes.size());
  static constexpr int messagesOfBlock = 12;
  static constexpr int notTimed = 6;  // the first of a block: what lies in the kernel and in the caches is not theirs
  static constexpr std::size_t timesOfSize = 2 * (messagesOfBlock - notTimed);
  static constexpr int period = 2048;
  static constexpr double worthIt = 0.9;  // of the present time

  void decide() noexcept;

  std::array<std::array<double, timesOfSize>, sizes.size()> secondsPerByte_{};
  std::array<std::size_t, sizes.size()> noted_{};
  int sent_ = 0;  // of the period
  std::size_t best_ = 1;
};

}  // namespace tacc
