// A network in one thread: messages of all ranks of a test, delivered one by one in any order the test likes.
//
// It is as unkind as the interface allows: a message is read from the sender's memory and written to the receiver's
// only when it is delivered, and each end hears of it later still.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "transports/network_transport.hpp"

namespace tacc::test {

class FakeNetwork {
 public:
  FakeNetwork(int ranks, unsigned seed) : random_(seed) {
    for (int r = 0; r < ranks; ++r) ends_.push_back(std::make_unique<End>(*this, r));
  }
  NetworkTransport& end(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }

  /// Delivers or completes something at random; false when nothing can be.
  bool step() {
    const std::size_t choices = ready_.size() + completions_.size();
    if (choices == 0) return false;
    const std::size_t choice = random_() % choices;
    if (choice < ready_.size()) {
      deliver(take(ready_, choice));
    } else {
      take(completions_, choice - ready_.size())->done = true;
    }
    return true;
  }
  bool isEmpty() const { return open_.empty() && ready_.empty() && completions_.empty(); }
  std::size_t bytesSent(int rank) const { return ends_[static_cast<std::size_t>(rank)]->sent; }

 private:
  struct Side {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    NetworkRequest* request = nullptr;  // null: this end has not come yet
  };
  struct Message {
    Side sender, receiver;
  };
  using Key = std::tuple<int, int, std::uint32_t>;  // from, to, tag

  struct End final : NetworkTransport {
    End(FakeNetwork& owner, int number) : network(owner), rank(number) {}
    std::vector<std::byte> address() const override { return {}; }
    void setPeers(std::vector<std::vector<std::byte>>) override {}
    void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) override {
      request.done = false;
      sent += bytes;
      network.post({rank, peer, tag}, &Message::sender,
                   {static_cast<std::byte*>(const_cast<void*>(data)), bytes, &request});
    }
    void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) override {
      request.done = false;
      network.post({peer, rank, tag}, &Message::receiver, {static_cast<std::byte*>(data), capacity, &request});
    }
    bool progress() override { return false; }
    int descriptor() const override { return -1; }
    bool arm() override { return true; }
    std::string describe() const override { return "fake"; }
    FakeNetwork& network;
    int rank;
    std::size_t sent = 0;
  };

  template <class T>
  static T take(std::vector<T>& from, std::size_t index) {
    T taken = from[index];
    from[index] = from.back();
    from.pop_back();
    return taken;
  }

  void post(const Key& key, Side Message::*end, const Side& side) {
    Message& message = open_[key];
    if ((message.*end).request != nullptr) fail(taccInternalError, "tag {} is used twice", std::get<2>(key));
    message.*end = side;
    if (message.sender.request == nullptr || message.receiver.request == nullptr) return;
    ready_.push_back(message);
    open_.erase(key);
  }

  void deliver(const Message& message) {
    const auto& [sender, receiver] = message;
    if (sender.bytes > receiver.bytes)
      fail(taccInvalidUsage, "a message of {} bytes came where at most {} were due", sender.bytes, receiver.bytes);
    if (sender.bytes > 0) std::memcpy(receiver.data, sender.data, sender.bytes);
    receiver.request->bytes = sender.bytes;
    completions_.push_back(sender.request);
    completions_.push_back(receiver.request);
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<End>> ends_;
  std::map<Key, Message> open_;  // one end has come
  std::vector<Message> ready_;
  std::vector<NetworkRequest*> completions_;
};

}  // namespace tacc::test
