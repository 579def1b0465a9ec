// What a rank drives while it waits for messages: a plan's run, point-to-point messages.
#pragma once

#include <vector>

namespace tacc {

/// Something that goes on when messages arrive.
class NetworkActivity {
 public:
  virtual ~NetworkActivity() = default;
  /// Does what can be done now; true when something was.
  virtual bool advance() = 0;
  virtual bool isFinished() const = 0;
  /// The ranks whose messages are due.
  virtual std::vector<int> awaited() const = 0;
  /// The rank from which a message has to come before anything else can be done; -1: there is no such rank.
  virtual int nextSender() const { return -1; }
};

}  // namespace tacc
