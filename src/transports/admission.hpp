// Who has connected to one of a rank's sockets, and has not proven yet to be of the job: at rank 0 and gateways while
// ranks join, at a center, among survivors, and at a rank's TCP port.
//
// Until then it is a descriptor and some hundred bytes, for some seconds, one of a bounded number. At the bound one has
// to go that comes from no rank's host, or else the one that has been silent for the longest: so a flood from elsewhere
// pushes out nobody else, and one from a rank's own host would have to bring more connections than there is room for
// while a rank answers its challenge. Nobody goes whose proof has come and is not read yet. A rank that is pushed out
// all the same connects again.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "transports/file_descriptor.hpp"
#include "transports/inet_address.hpp"
#include "transports/refusals.hpp"

namespace tacc {

/// Somebody who has connected.
class Stranger {
 public:
  enum class Standing {
    waits,
    proven,  // it is kept elsewhere as what it has turned out to be
    gone,    // without a word, as a rank does that found a better way
    refused
  };
  struct Hearing {
    Standing standing;
    std::string why;  // of one that is refused
  };

  Stranger() = default;
  virtual ~Stranger() = default;
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  /// For poll(), while it waits.
  virtual pollfd descriptor() const noexcept = 0;
  /// Reads what has come, and answers. What it throws ends it.
  virtual Hearing hear() = 0;
};

/// Where a connection comes from.
struct Origin {
  bool isTcp;
  std::string text;  // "process 4711 of this host" or "192.0.2.2:4711"
};

class Admission {
 public:
  using Clock = std::chrono::steady_clock;
  /// Begins to ask who it is; null: the connection has ended already.
  using Receive = std::function<std::unique_ptr<Stranger>(FileDescriptor socket, const Origin& origin)>;

  /// A connection that has not proven itself by then is closed.
  static constexpr std::chrono::seconds patience{2};
  /// More of them than ranks.
  static constexpr std::size_t strangerLimit = 64;
  /// What is accepted in a row before others have their turn.
  static constexpr int acceptedAtOnce = 16;
  /// Where there is no descriptor for another connection, one from a rank's host that has proven nothing by then makes
  /// room. Before that a rank could push out another one.
  static constexpr std::chrono::milliseconds yieldTime{200};
  /// A shortage of descriptors that lasts is for the owner to tell: who connects cannot know of it.
  static constexpr std::chrono::milliseconds shortageLimit{300};
  /// Between attempts while descriptors are short.
  static constexpr std::chrono::milliseconds shortagePause{20};

  /// The admission at rank `rank` of `ranks`.
  Admission(int rank, std::size_t ranks, Receive receive);

  /// At `host` there is a rank. Where no host is known, all count as such.
  void addHost(const InetAddress::V6& host) { hosts_.insert(host); }

  /// The next of those who wait at the socket `listener`: its number. Nothing when nobody waits, or there is no
  /// descriptor for the next (isOpen()).
  std::optional<int> accept(int listener, bool isTcp);
  /// False: there was no descriptor for the last who wanted to come. They wait in the kernel, until reopensAt().
  bool isOpen() const noexcept { return Clock::now() >= reopensAt_; }
  Clock::time_point reopensAt() const noexcept { return reopensAt_; }
  /// errno's code, when the shortage has lasted for shortageLimit; else 0.
  int lastingShortage() const noexcept;
  /// The same of the last shortage, however short it was.
  int lastShortage() const noexcept { return shortage_; }

  /// Who stands here, oldest first. What addDescriptors() adds to what is polled is given back to hear() with its
  /// revents.
  bool isEmpty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  int descriptorOf(int number) const { return entries_.at(number).who->descriptor().fd; }
  void addDescriptors(std::vector<pollfd>& sockets) const;
  void hear(std::span<const pollfd> sockets);
  void hear(int number);
  /// Dismisses those who have been silent for too long.
  void dismissSilent();
  /// When the next one will have been, or accept() may be tried again; nothing: nobody is waited for.
  std::optional<Clock::time_point> nextDue() const;

  /// Forgets all of them.
  void clear() noexcept;
  /// "; 3 connections were refused, the last from 192.0.2.2:4711: ...", or nothing.
  std::string describeRefusals() const { return refusals_.describe(); }

 private:
  struct Entry {
    std::unique_ptr<Stranger> who;
    Origin origin;
    bool isNear;  // from a rank's host
    Clock::time_point since;
  };
  using Entries = std::map<int, Entry>;

  bool makeRoom(bool isForDescriptor, const char* why);
  bool noteShortage(int code);
  Entries::iterator dismiss(Entries::iterator one, const std::string& why);
  Entries::iterator hear(Entries::iterator one);
  Entries::iterator drop(Entries::iterator one) noexcept;

  std::size_t ranks_;
  Receive receive_;
  std::set<InetAddress::V6> hosts_;
  Entries entries_;      // oldest first
  std::size_t far_ = 0;  // of them, from no rank's host
  int next_ = 0;
  int shortage_ = 0;
  std::optional<Clock::time_point> shortSince_;
  Clock::time_point reopensAt_{};
  Refusals refusals_;
};

}  // namespace tacc
