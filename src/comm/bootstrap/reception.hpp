// The door of rank 0, of gateways and of centers: who connects has to prove that it is of the job before it is anything
// else.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/bootstrap/listeners.hpp"
#include "comm/bootstrap/wait.hpp"
#include "transports/admission.hpp"

namespace tacc {

/// Somebody who has proven to be of the job.
struct Guest {
  Channel channel;  // trusted; the welcome is queued
  bool overTcp;
  Introduction who;
};

class Reception {
 public:
  Reception(std::vector<Listener> listeners, const Introduction& self, const Secret& secret);
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  /// Adds what it waits for; `next` becomes the moment at which serve() is due in any case, if that is earlier.
  void addDescriptors(std::vector<pollfd>& sockets, Deadline& next) const;
  /// `sockets`: those that addDescriptors() added, with their revents. An Error of `admit` ends it; the guests that are
  /// left come with the next call. Throws taccSystemError when there have been no descriptors for others for a while.
  void serve(std::span<const pollfd> sockets, const std::function<void(Guest& guest)>& admit);

  void closeTcp() {
    std::erase_if(listeners_, [](const Listener& listener) { return listener.isTcp; });
  }
  void close();

  /// "; 3 connections were refused, the last from 192.0.2.2:4711: ...", or nothing.
  std::string describeRefusals() const { return admission_.describeRefusals(); }

 private:
  class Newcomer;

  std::vector<Listener> listeners_;
  Introduction self_;
  Secret secret_;
  std::deque<Guest> guests_;  // not yet admitted
  Admission admission_;
};

}  // namespace tacc
