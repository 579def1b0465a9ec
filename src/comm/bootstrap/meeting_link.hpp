// A connection between two ranks that agree: made without waiting, proven at both ends with the communicator's secret,
// then carrying notes.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/connect.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/bootstrap/meeting_note.hpp"
#include "core/error.hpp"
#include "transports/inet_address.hpp"

namespace tacc {

class Presence;

/// Where a rank's socket listens. Plain, to be sent to the others.
struct SurvivorPlace {
  std::array<char, 40> name;  // of a unix socket in the abstract namespace
  InetAddress::V6 address;    // of TCP; all zero: over the unix socket only
  std::uint16_t port;
};

/// What every rank of a communicator knows of all.
struct MeetingMembers {
  int rank = 0;                       // this one's
  std::vector<SurvivorPlace> places;  // by rank
  Secret secret{};
  bool encrypts = false;  // TACC_ENCRYPTION
  /// Null: a rank at whose place nobody listens has ended. Else this says so, and one that is there and does not listen
  /// yet is waited for like one that listens and does not answer.
  std::shared_ptr<const Presence> presence = {};
};

class MeetingLink {
 public:
  enum class State : std::uint8_t {
    connecting,  // the other end's kernel has not answered yet
    proving,     // connected, or the other one has yet to open its place; its process may not even look
    open,        // both ends have proven that they know the secret
    refused,     // nobody listens there: the rank has ended
    lost,        // closed, cut off, or no member of the communicator
  };
  using Clock = std::chrono::steady_clock;

  /// Calls on `peer`. Throws taccSystemError when this process can make no sockets.
  MeetingLink(const MeetingMembers& members, int peer);
  /// Somebody has come.
  MeetingLink(const MeetingMembers& members, FileDescriptor socket);
  /// What was sent last still arrives.
  ~MeetingLink();
  MeetingLink(const MeetingLink&) = delete;
  MeetingLink& operator=(const MeetingLink&) = delete;

  State state() const noexcept { return state_; }
  bool isOver() const noexcept { return state_ == State::refused || state_ == State::lost; }
  /// The rank at the other end; -1: of one who came and has not proven it.
  int peer() const noexcept { return peer_; }
  /// The other rank has not opened its place: progress() is due now and then, as no descriptor tells of it.
  bool isEarly() const noexcept { return isEarly_; }
  double age() const noexcept { return secondsSince(since_); }
  /// Since something came that counts: a step of the proof, or a note.
  double silence() const noexcept { return secondsSince(heard_); }

  /// For poll(). One that waits for nothing is left out by poll(): its descriptor is -1.
  pollfd descriptor() const noexcept;
  /// Does what can be done now. Never throws: what fails makes it lost.
  void progress() noexcept;
  void send(const MeetingNote& note) noexcept;
  /// Tells the other end that this rank's agreement has failed.
  void sendFailure(const Error& error) noexcept;
  bool hasOutput() const noexcept { return channel_ && channel_->hasOutput(); }
  /// Whether anything was heard of the one that came.
  bool hasSpoken() const noexcept { return heard_ != since_ || (channel_ && channel_->hasSpoken()); }
  /// The next note, also of those that came before the connection ended.
  std::optional<MeetingNote> take();
  /// Whether word can still be left: the other end has been asked nothing yet, or its kernel has not answered.
  bool canLeaveWord() const noexcept { return isCaller_ && !isOver() && !isProven_ && !hello_; }
  /// Leaves word at the door of a rank that does not answer, or in the memory of one that has not opened it: this
  /// agreement was decided without it.
  void leaveWord(std::uint32_t instance) noexcept;
  /// The agreement of which somebody left word here that it was decided without this rank.
  const std::optional<std::uint32_t>& word() const noexcept { return word_; }
  /// What the other end failed with, if it said so.
  const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  static double secondsSince(Clock::time_point then) noexcept {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }
  void begin();
  void adopt(FileDescriptor socket);
  void step();
  void proveAsCaller(const Message& message);
  void proveAsHost(const Message& message);
  Introduction introduceSelf() const;

  const MeetingMembers& members_;
  bool isCaller_;
  int peer_ = -1;
  State state_ = State::connecting;
  bool isProven_ = false;
  bool isEarly_ = false;
  Attempt attempt_;
  std::optional<Channel> channel_;
  Challenge challenge_{};
  std::optional<Hello> hello_;
  std::optional<Error> failure_;
  std::optional<std::uint32_t> word_;
  Clock::time_point since_ = Clock::now(), heard_ = since_;
};

}  // namespace tacc
