// Private memory between the processes of a node through pipes: its owner gives the kernel the pages (vmsplice), the
// receiver reads them there. Nothing is copied into the pipe, so the bytes are copied once, as with process_vm_readv;
// but each process asks the kernel for pages of its own memory alone, which takes it a third of the time that it needs
// to find those of another one. With pages of 4 KiB a copy in the cache is 1.5 times as fast.
//
// A pipe an ordered pair. What is read comes in the order in which it was given. The owner leaves the memory as it is
// until then. Who gives waits for no room: what a pipe does not take is given later, whenever its owner waits for
// something here.
//
// Pipes are made by the first calls that could use them. Each step is agreed on by what the ranks show each other in
// their calls: a rank offers its ends, opens those of the others once all have offered theirs, and the pipes are used
// once all have opened them. Where a rank cannot, all close what they have.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/file_descriptor.hpp"
#include "transports/file_identity.hpp"
#include "transports/shm/node_segment.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

class PagePipes {
 public:
  /// How far a rank has come; refused: it never will. The least of all ranks' is how far all have.
  enum class State : std::uint8_t { refused, none, offered, open };

  /// `processes[r]`: rank r's pid.
  PagePipes(const NodeSegment& segment, int rank, Waiter& waiter, std::vector<int> processes);
  ~PagePipes() { close(); }
  PagePipes(const PagePipes&) = delete;
  PagePipes& operator=(const PagePipes&) = delete;

  /// This rank's, for the others to know.
  State state() const noexcept { return state_; }
  /// A program that has closed what is open here, as one does that becomes a daemon, has pipes no more. To be called
  /// before others are told of the state. Cost: two system calls a peer.
  void check() noexcept;
  /// One step on, if it can be taken; `all`: the least of all ranks' states. Cost: about 30 us a peer, once.
  void advance(State all) noexcept;

  /// Gives `bytes` at `from` to `rank`, and waits for nobody. Throws taccSystemError where the kernel has no such
  /// memory.
  void give(int rank, const void* from, std::size_t bytes);
  /// Reads what `rank` gives next. Throws as Waiter::wait().
  void read(int rank, void* to, std::size_t bytes);
  /// Waiter::wait(), during which what has not been given yet is.
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t target, int owner);
  /// After a call that has failed: what is in the pipes is read by nobody.
  void close() noexcept;

 private:
  struct Given {
    const std::byte* from;
    std::size_t bytes;
  };
  /// What is left for one peer.
  struct Queue {
    std::vector<Given> given;
    std::size_t first = 0;  // that is not in the pipe yet
  };
  struct End {
    FileDescriptor fd;
    FileId id{};
    /// Whether the descriptor is still that of the pipe.
    bool stands() const noexcept { return fd.valid() && identify(fd.get()) == id; }
  };
  class Patience;

  bool offer();
  bool open();
  /// Gives what the pipes have room for. Whether that was anything.
  bool feed();
  bool feed(int rank);
  [[noreturn]] void failToGive(int rank, const Given& given) const;

  NodeSegment segment_;
  int rank_;
  Waiter& waiter_;
  std::vector<int> processes_;
  State state_ = State::none;
  int slots_ = 0;  // of all that this rank writes
  std::vector<End> outgoing_, incoming_;
  std::vector<Queue> queues_;
  int feeding_ = 0;  // peers for whom something is left
};

}  // namespace tacc
