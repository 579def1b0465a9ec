#include "transports/shm/hand_round.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

constexpr int millisecond = 1;
constexpr int eagerLooks = 64;       // for ranks that come at about the same time, before this one sleeps
constexpr int strangersAtOnce = 32;  // so that a flood of theirs does not keep this rank from looking at the time
/// Any number of the kernel's; more than mostOffered, so that what strangers send is taken whole and closed.
constexpr std::size_t mostDescriptors = 16;

using ControlBuffer = std::array<std::byte, CMSG_SPACE(mostDescriptors * sizeof(int))>;

bool isWorthAnotherTry(int code) {
  return code == ECONNREFUSED || code == EAGAIN || code == EINTR || code == ETOOMANYREFS || code == ENOBUFS;
}

}  // namespace

/// What a rank sends to another, beside the descriptors.
struct HandRound::Parcel {
  Proof proof;
  std::int32_t rank;  // whose it is
  std::uint32_t count;
  struct Entry {
    std::uint64_t id, bytes;
  };
  std::array<Entry, mostOffered> entries;
};

/// One round of one rank.
class HandRound::Round {
 public:
  Round(const HandRound& self, std::uint64_t number) : self_(self), number_(number) {
    socket_ = ownDescriptor([] { return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
    const AbstractAddress own(nameOf(self.rank_));
    if (!socket_.valid() || ::bind(socket_.get(), own.get(), own.size()) != 0)
      failDescriptor("cannot make the socket over which library memory is handed round");
  }

  /// False: that rank has not come yet.
  bool send(int to, std::span<const OfferedMemory> mine) {
    Parcel parcel{proofOf(self_.rank_, to), self_.rank_, static_cast<std::uint32_t>(mine.size()), {}};
    std::array<int, mostOffered> descriptors{};
    for (std::size_t i = 0; i < mine.size(); ++i) {
      parcel.entries[i] = {mine[i].id, mine[i].bytes};
      descriptors[i] = mine[i].fd;
    }
    iovec bytes{&parcel, sizeof parcel};
    const AbstractAddress address(nameOf(to));
    alignas(cmsghdr) ControlBuffer control{};
    msghdr message{};
    message.msg_name = const_cast<sockaddr*>(address.get());
    message.msg_namelen = address.size();
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    const std::size_t carried = mine.size() * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(carried);
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(carried);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), carried);
    if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
    if (isWorthAnotherTry(errno)) return false;
    failErrno("cannot hand library memory to rank {}", to);
  }

  /// Takes one datagram; false if none is there. One of a rank in `waitsFor` ends the wait for it; others are dropped.
  bool receive(std::vector<bool>& waitsFor, std::vector<ReceivedMemory>& received) {
    Parcel parcel{};
    iovec bytes{&parcel, sizeof parcel};
    alignas(cmsghdr) ControlBuffer control{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t count;
    std::vector<FileDescriptor> descriptors;
    {
      const std::lock_guard lock(descriptorMutex());
      const TakenStandardNumbers taken;
      count = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
      if (count >= 0) descriptors = takeDescriptors(message);
    }
    if (count < 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      failErrno("cannot take library memory of other ranks");
    }
    const bool isKnown = count == static_cast<ssize_t>(sizeof parcel) && parcel.rank >= 0 &&
                         parcel.rank < self_.ranks_ && waitsFor[static_cast<std::size_t>(parcel.rank)] &&
                         areEqual(parcel.proof, proofOf(parcel.rank, self_.rank_));
    if (!isKnown) return true;
    if (parcel.count > mostOffered || parcel.count != descriptors.size()) {
      errno = EMFILE;  // the kernel does not say why it left some out; this is the one reason it has
      if ((message.msg_flags & MSG_CTRUNC) != 0) failDescriptor("cannot take the library memory of another rank");
      fail(taccInternalError, "rank {} hands round {} pieces of library memory and {} descriptors", parcel.rank,
           parcel.count, descriptors.size());
    }
    for (std::size_t i = 0; i < descriptors.size(); ++i)
      received.push_back({parcel.rank, parcel.entries[i].id, std::move(descriptors[i]), parcel.entries[i].bytes});
    waitsFor[static_cast<std::size_t>(parcel.rank)] = false;
    return true;
  }

  bool hasMail(int milliseconds) const noexcept {
    pollfd socket{socket_.get(), POLLIN, 0};
    return ::poll(&socket, 1, milliseconds) > 0;
  }

 private:
  std::string nameOf(int rank) const {
    const Proof hash = keyedHash(self_.key_, "tacc: round name", {bytesOf(number_), bytesOf(rank)});
    std::string name = "tacc-h-";
    for (std::size_t i = 0; i < 16; ++i) name += fmt::format("{:02x}", hash[i]);
    return name;
  }
  Proof proofOf(int from, int to) const {
    return keyedHash(self_.key_, "tacc: round pass", {bytesOf(number_), bytesOf(from), bytesOf(to)});
  }

  const HandRound& self_;
  std::uint64_t number_;
  FileDescriptor socket_;
};

HandRound::HandRound(const Key& key, int ranks, int rank) : key_(key), ranks_(ranks), rank_(rank) {}

std::vector<ReceivedMemory> HandRound::run(std::span<const OfferedMemory> mine, const std::vector<bool>& givers,
                                           const Look& look) {
  if (mine.size() > mostOffered)
    fail(taccInternalError, "{} pieces of library memory are handed round at once, {} are the most", mine.size(),
         mostOffered);
  if (ranks_ == 1) return {};
  Round round(*this, rounds_++);
  std::vector<ReceivedMemory> received;
  std::vector<bool> waitsFor = givers;
  std::vector<bool> owes(givers.size(), !mine.empty());
  waitsFor[static_cast<std::size_t>(rank_)] = owes[static_cast<std::size_t>(rank_)] = false;
  const auto any = [](const std::vector<bool>& flags) { return std::ranges::find(flags, true) != flags.end(); };
  for (int looks = 0;; ++looks) {
    for (int rank = 0; rank < ranks_; ++rank)
      if (owes[static_cast<std::size_t>(rank)] && round.send(rank, mine)) owes[static_cast<std::size_t>(rank)] = false;
    for (int i = 0; i < ranks_ + strangersAtOnce && round.receive(waitsFor, received); ++i) {
    }
    if (!any(waitsFor) && !any(owes)) return received;
    if (looks < eagerLooks) {
      ::sched_yield();
      continue;
    }
    for (int rank = 0; rank < ranks_; ++rank)
      if (waitsFor[static_cast<std::size_t>(rank)] || owes[static_cast<std::size_t>(rank)])
        look(rank, [&] { return round.hasMail(0); });
    (void)round.hasMail(millisecond);
  }
}

}  // namespace tacc
