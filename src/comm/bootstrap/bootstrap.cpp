#include "comm/bootstrap/bootstrap.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "comm/bootstrap/bootstrap_member.hpp"
#include "comm/bootstrap/bootstrap_root.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "transports/interfaces.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

constexpr int rankLimit = 65536;
constexpr std::size_t longestString = std::size_t{64} << 20;
constexpr double causeSeconds = 0.5;  // rank 0 tells at once what it knows

void checkArguments(int ranks, int rank, double timeoutSeconds) {
  if (ranks < 1 || ranks > rankLimit) {
    fail(taccInvalidArgument, "the number of ranks is {}, it must be 1 to {}", ranks, rankLimit);
  }
  if (rank < 0 || rank >= ranks) {
    fail(taccInvalidArgument, "the rank is {}, of {} ranks it must be 0 to {}", rank, ranks, ranks - 1);
  }
  if (!(timeoutSeconds > 0)) fail(taccInvalidArgument, "the time-out is {} s, it must be above 0", timeoutSeconds);
}

}  // namespace

Bootstrap::Bootstrap(const taccUniqueId& id, int ranks, int rank, double timeoutSeconds, const std::stop_token& stop,
                     const BootstrapOptions& options)
    : ranks_(ranks),
      rank_(rank),
      timeoutSeconds_(timeoutSeconds),
      interrupt_(rank),
      stopper_(stop, Stopper{interrupt_}) {
  checkArguments(ranks, rank, timeoutSeconds);
  const UniqueIdContents contents = openUniqueId(id);
  secret_ = contents.secret;
  if (ranks == 1) return;
  keepSpareDescriptors();
  if (rank == 0) {
    std::optional<SpareDescriptors> spare;
    std::optional<Error> failure;
    std::optional<std::vector<Listener>> listeners;
    try {
      listeners = listenFor(contents);
    } catch (const Error& error) {
      // Where it was for want of descriptors, the spare ones are enough to tell the others.
      failure = error;
      spare.emplace();
      listeners = listenFor(contents);
    }
    if (listeners) {
      root_ = std::make_unique<BootstrapRoot>(std::move(*listeners), contents, ranks, timeoutSeconds, options.treeWidth,
                                              interrupt_, options.idleWork, options.encrypts, failure,
                                              options.isHeardElsewhere);
      allUnix_ = root_->allUnix();
      return;
    }
    // Another process is rank 0 already: joining it as a second rank 0 tells both, and all others.
  }
  member_ = std::make_unique<BootstrapMember>(
      contents, ranks, rank, timeoutSeconds,
      TreeShape{options.treeWidth, options.host, options.encrypts, options.isHeardElsewhere}, interrupt_,
      options.idleWork);
  allUnix_ = member_->allUnix();
  findOwnAddress();
}

Bootstrap::~Bootstrap() { ::sodium_memzero(secret_.data(), secret_.size()); }

Key Bootstrap::deriveKey(Purpose purpose) const { return keyedHash(secret_, purpose, {}); }

void Bootstrap::findOwnAddress() {
  const std::optional<InetAddress> address = member_->localAddress();
  if (!address) return;
  localAddress_ = address->host();
  interface_ = interfaceOf(interfaceAddresses(), *address);
}

void Bootstrap::needUnix(std::string_view operation) const {
  if (!allUnix_) {
    fail(taccInternalError, "{}: rank {}: descriptors pass among the ranks of one host only, and these are of several",
         operation, rank_);
  }
}

ControlTree Bootstrap::releaseTree() {
  if (broken_) throw Error(*broken_);
  ControlTree tree = root_ ? root_->release() : member_ ? member_->release() : ControlTree{};
  broken_ = Error(taccInternalError, "the bootstrap's connections were handed over: it takes no more calls");
  return tree;
}

template <class Work>
auto Bootstrap::collective(const Work& work) {
  if (broken_) throw Error(*broken_);
  try {
    const auto checked = [&] {
      checkInterrupt();
      return work();
    };
    return root_ ? root_->collective(checked) : member_ ? member_->collective(checked) : checked();
  } catch (const Error& error) {
    broken_ = error;
    throw;
  }
}

std::vector<std::byte> Bootstrap::allGather(std::span<const std::byte> mine) {
  constexpr std::string_view operation = "gathering from all";
  return collective([&]() -> std::vector<std::byte> {
    std::vector<std::byte> all(mine.begin(), mine.end());
    if (root_) {
      const std::vector<Message> parts = root_->gather(MessageKind::gather, operation, timeoutSeconds_);
      for (std::size_t rank = 1; rank < parts.size(); ++rank) {
        const std::vector<std::byte>& part = parts[rank].payload;
        if (part.size() != mine.size()) {
          fail(taccInternalError, "{}: rank {} gave {} bytes, rank 0 gave {}", operation, rank, part.size(),
               mine.size());
        }
        all.insert(all.end(), part.begin(), part.end());
      }
      const Payload payload = makePayload(all);
      root_->scatter(MessageKind::gathered, operation, timeoutSeconds_, [&](int) { return Answer{payload, {}}; });
    } else if (member_) {
      member_->send(MessageKind::gather, makePayload(std::move(all)), {}, operation, timeoutSeconds_);
      all = member_->receive(MessageKind::gathered, operation, timeoutSeconds_).payload;
      if (all.size() != mine.size() * static_cast<std::size_t>(ranks_)) {
        fail(taccInternalError, "{}: {} bytes came for {} ranks of {} bytes", operation, all.size(), ranks_,
             mine.size());
      }
    }
    return all;
  });
}

std::vector<std::vector<std::byte>> Bootstrap::allGatherStrings(const std::vector<std::byte>& mine) {
  const auto sizes = gatherValues(mine.size());
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  const std::size_t longest = *largest;
  if (longest > longestString) {
    fail(taccInternalError, "gathering from all: rank {} announces {} bytes, {} are the most", largest - sizes.begin(),
         longest, longestString);
  }
  std::vector<std::byte> padded = mine;
  padded.resize(longest);
  const auto all = allGather(padded);
  std::vector<std::vector<std::byte>> result;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r * longest);
    result.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes[r]));
  }
  return result;
}

std::vector<std::byte> Bootstrap::broadcast(std::span<const std::byte> ofRankZero) {
  constexpr std::string_view operation = "hearing from rank 0";
  return collective([&]() -> std::vector<std::byte> {
    if (member_) return member_->receive(MessageKind::gathered, operation, timeoutSeconds_).payload;
    std::vector<std::byte> bytes(ofRankZero.begin(), ofRankZero.end());
    if (root_) {
      const Payload payload = makePayload(bytes);
      root_->scatter(MessageKind::gathered, operation, timeoutSeconds_, [&](int) { return Answer{payload, {}}; });
    }
    return bytes;
  });
}

FileDescriptor Bootstrap::broadcastDescriptor(int fd) {
  constexpr std::string_view operation = "passing a descriptor";
  return collective([&]() -> FileDescriptor {
    needUnix(operation);
    if (!member_) {
      FileDescriptor own = duplicate(fd);
      if (root_) {
        root_->scatter(MessageKind::descriptor, operation, timeoutSeconds_, [&](int) {
          return Answer{nullptr, {own.get()}};
        });
      }
      return own;
    }
    Message message = member_->receive(MessageKind::descriptor, operation, timeoutSeconds_);
    if (message.descriptors.size() != 1) {
      fail(taccInternalError, "{}: {} descriptors came instead of 1", operation, message.descriptors.size());
    }
    return std::move(message.descriptors.front());
  });
}

void Bootstrap::announceFailure(const Error& error) noexcept {
  try {
    collective([&]() -> int { throw Error(error); });
  } catch (...) {
    // Known to the caller, who reports it.
  }
}

void Bootstrap::awaitCause() {
  collective([&] {
    if (root_) root_->listen(causeSeconds);
    if (member_) member_->listen(causeSeconds);
    return 0;
  });
}

void Bootstrap::checkOthers() {
  checkInterrupt();
  if ((root_ && root_->hasLostSomeone()) || (member_ && member_->hasLostSomeone())) awaitCause();
}

void Bootstrap::setIdleWork(std::function<void()> work) {
  if (root_)
    root_->idleWork = std::move(work);
  else if (member_)
    member_->idleWork = std::move(work);
}

void Bootstrap::interrupt() noexcept { interrupt_.raise(); }

void Bootstrap::checkInterrupt() const {
  if (interrupt_.raised()) fail(taccRemoteError, "the communicator was aborted by rank {}", rank_);
}

}  // namespace tacc
