// The door of rank 0 and of gateways: who connects has to prove that it is of the job before it is anything else.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/bootstrap/listeners.hpp"
#include "comm/bootstrap/wait.hpp"
#include "transports/refusals.hpp"

namespace tacc {

/// Somebody who has proven to be of the job.
struct Guest {
  Channel channel;  // trusted; the welcome is queued
  bool overTcp;
  Introduction who;
};

/// Strangers, garbage and connections that say nothing are refused and hinder nobody.
class Reception {
 public:
  Reception(std::vector<Listener> listeners, const Introduction& self, const Secret& secret)
      : listeners_(std::move(listeners)), self_(self), secret_(secret), refusals_(static_cast<int>(self.rank)) {}

  /// Adds what it waits for; `next` becomes the moment at which serve() is due in any case, if that is earlier.
  void addDescriptors(std::vector<pollfd>& sockets, Deadline& next) const;
  /// `sockets`: those that addDescriptors() added, with their revents. An Error of `admit` ends it; the guests that are
  /// left come with the next call.
  void serve(std::span<const pollfd> sockets, const std::function<void(Guest& guest)>& admit);

  void closeTcp() {
    std::erase_if(listeners_, [](const Listener& listener) { return listener.isTcp; });
  }
  void close();

  /// "; 3 connections were refused, the last from 192.0.2.2:4711: ...", or nothing.
  std::string describeRefusals() const { return refusals_.describe(); }

 private:
  struct Newcomer {
    Channel channel;
    bool overTcp;
    std::string from;
    Challenge challenge;
    Deadline deadline;
    Deadline yields;  // from when on it has to go where there is no descriptor for another
  };

  void acceptNewcomers(const Listener& listener);
  bool serveNewcomer(Newcomer& newcomer);

  std::vector<Listener> listeners_;
  Introduction self_;
  Secret secret_;
  std::list<Newcomer> newcomers_;  // not yet proven, oldest first
  std::deque<Guest> guests_;       // proven, not yet admitted
  bool isFull_ = false;            // there was no descriptor for the next one
  Refusals refusals_;
};

}  // namespace tacc
