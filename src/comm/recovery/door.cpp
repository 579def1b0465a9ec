#include "comm/recovery/door.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/tcp/tcp.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

std::string randomName() {
  const Nonce nonce = makeNonce();
  std::string name = "tacc-m-";
  for (std::size_t i = 0; i < 16; ++i) name += fmt::format("{:02x}", nonce[i]);
  return name;
}

FileDescriptor bindDoor(const std::string& name) {
  FileDescriptor socket =
      ownDescriptor([&] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  const AbstractAddress address(name);
  if (!socket.valid() || ::bind(socket.get(), address.get(), address.size()) != 0)
    failDescriptor("cannot make the socket at which survivors meet");
  return socket;
}

}  // namespace

/// Somebody at the door.
class Door::Caller : public Stranger {
 public:
  Caller(Door& door, FileDescriptor socket)
      : door_(door), link_(std::make_unique<MeetingLink>(*door.members_, std::move(socket))) {}

  pollfd descriptor() const noexcept override { return link_->descriptor(); }

  Hearing hear() override {
    link_->progress();
    if (link_->peer() >= 0 || link_->word()) {
      door_.visitors_->push_back(std::move(link_));
      return {Standing::proven, ""};
    }
    if (!link_->isOver()) return {Standing::waits, ""};
    if (!link_->hasSpoken()) return {Standing::gone, ""};
    return {Standing::refused, "it has not proven to be of this communicator"};
  }

 private:
  Door& door_;
  std::unique_ptr<MeetingLink> link_;
};

Door::Door(int rank, const InetAddress* address) : rank_(rank) {
  if (address == nullptr) {
    openUnix(randomName());
  } else {
    // Nobody is told of any other address of this host.
    listener_ = bindTcp(0, *address);
    if (!listener_.valid()) listener_ = bindTcp(0);
    if (!listener_.valid()) {
      const int code = errno;
      const std::string why = describeNoPort(code);
      errno = code;
      failDescriptor("rank {}: cannot bind the port at which survivors meet{}", rank, why);
    }
    place_.address = address->v6();
    place_.port = portOf(listener_.get());
  }
  listen();
}

Door::Door(int rank, const std::string& name) : rank_(rank) {
  openUnix(name);
  listen();
}

Door::~Door() { giveUpReplaced(listener_, file_); }

void Door::openUnix(const std::string& name) {
  std::ranges::copy(name, place_.name.begin());
  listener_ = bindDoor(name);
}

void Door::listen() {
  if (::listen(listener_.get(), SOMAXCONN) != 0) failErrno("rank {}: cannot listen for survivors", rank_);
  file_ = identify(listener_.get());
}

void Door::receiveFor(const MeetingMembers& members, std::list<std::unique_ptr<MeetingLink>>& visitors) {
  members_ = &members;
  visitors_ = &visitors;
  if (admission_) return;
  admission_.emplace(rank_, members.places.size(),
                     [this](FileDescriptor socket, const Origin& origin) -> std::unique_ptr<Stranger> {
                       if (origin.isTcp) tuneTcp(socket.get());
                       return std::make_unique<Caller>(*this, std::move(socket));
                     });
  for (const SurvivorPlace& place : members.places)
    if (place.port != 0) admission_->addHost(place.address);
}

void Door::stopReceiving() noexcept {
  admission_->clear();
  members_ = nullptr;
  visitors_ = nullptr;
}

void Door::addDescriptors(std::vector<pollfd>& sockets) const {
  sockets.push_back({admission_->isOpen() ? listener_.get() : -1, POLLIN, 0});
  admission_->addDescriptors(sockets);
}

void Door::serve(std::span<const pollfd> sockets) {
  admission_->hear(sockets.subspan(1));
  admission_->dismissSilent();
  // All the ranks may have come, and what they say is heard before anything is decided.
  const std::size_t most = static_cast<std::size_t>(Admission::acceptedAtOnce) + members_->places.size();
  for (std::size_t accepted = 0; accepted < most && admission_->isOpen(); ++accepted) {
    const auto caller = admission_->accept(listener_.get(), place_.port != 0);
    if (!caller) return;
    admission_->hear(*caller);
  }
}

void Door::keepOpen() noexcept { (void)listener_.release(); }

}  // namespace tacc
