#include "comm/bootstrap/reception.hpp"

#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {

/// Is challenged; a good answer makes it a guest.
class Reception::Newcomer : public Stranger {
 public:
  Newcomer(Reception& reception, FileDescriptor socket, bool overTcp)
      : reception_(reception), channel_(std::move(socket)), overTcp_(overTcp), challenge_{makeNonce()} {
    channel_.queue(MessageKind::challenge, payloadOf(challenge_));
  }
  bool begin() { return channel_.flush(); }

  pollfd descriptor() const noexcept override {
    return {channel_.fd(), static_cast<short>(channel_.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0};
  }

  Hearing hear() override {
    const bool isOpen = channel_.flush() && channel_.receive();
    const std::optional<Message> message = channel_.take();
    if (!message) {
      if (isOpen) return {Standing::waits, ""};
      // One that goes without a word is often a rank that found a better way here.
      if (!channel_.hasSpoken()) return {Standing::gone, ""};
      return {Standing::refused, channel_.whyClosed()};
    }
    const std::optional<Hello> hello = valueIn<Hello>(*message);
    if (message->kind != MessageKind::hello || !hello)
      return {Standing::refused, "it sent another message than one that joins"};
    const Secret& secret = reception_.secret_;
    if (!isGenuine(secret, challenge_, *hello))
      return {Standing::refused, "it does not know the secret of the unique id"};
    const Introduction& self = reception_.self_;
    channel_.queue(MessageKind::welcome, payloadOf(answerHello(secret, challenge_, *hello, self)));
    trustJoiner(channel_, secret, challenge_, *hello, self);
    reception_.guests_.push_back({std::move(channel_), overTcp_, hello->who});
    return {Standing::proven, ""};
  }

 private:
  Reception& reception_;
  Channel channel_;
  bool overTcp_;
  Challenge challenge_;
};

Reception::Reception(std::vector<Listener> listeners, const Introduction& self, const Secret& secret)
    : listeners_(std::move(listeners)),
      self_(self),
      secret_(secret),
      admission_(static_cast<int>(self.rank), self.ranks,
                 [this](FileDescriptor socket, const Origin& origin) -> std::unique_ptr<Stranger> {
                   if (origin.isTcp) tuneTcp(socket.get());
                   auto newcomer = std::make_unique<Newcomer>(*this, std::move(socket), origin.isTcp);
                   return newcomer->begin() ? std::move(newcomer) : nullptr;
                 }) {}

void Reception::addDescriptors(std::vector<pollfd>& sockets, Deadline& next) const {
  const bool isOpen = admission_.isOpen();
  for (const Listener& listener : listeners_) sockets.push_back({isOpen ? listener.socket.get() : -1, POLLIN, 0});
  admission_.addDescriptors(sockets);
  if (const auto due = admission_.nextDue())
    next = std::min(next, Deadline(std::chrono::duration<double>(*due - Admission::Clock::now()).count()));
}

void Reception::serve(std::span<const pollfd> sockets, const std::function<void(Guest& guest)>& admit) {
  admission_.hear(sockets.subspan(listeners_.size()));
  admission_.dismissSilent();
  // Before others are accepted: a guest that cannot stay leaves its descriptor to the next.
  while (!guests_.empty()) {
    Guest guest = std::move(guests_.front());
    guests_.pop_front();
    admit(guest);
  }
  for (std::size_t i = 0; i < listeners_.size() && admission_.isOpen(); ++i) {
    // Where descriptors were short, nobody has looked.
    if (sockets[i].fd >= 0 && sockets[i].revents == 0) continue;
    int accepted = 0;
    while (accepted < Admission::acceptedAtOnce && admission_.accept(listeners_[i].socket.get(), listeners_[i].isTcp))
      ++accepted;
  }
  if (const int code = admission_.lastingShortage(); code != 0) {
    errno = code;
    failDescriptor("rank {}: cannot accept the connection of another rank", self_.rank);
  }
}

void Reception::close() {
  listeners_.clear();
  admission_.clear();
  guests_.clear();
}

}  // namespace tacc
