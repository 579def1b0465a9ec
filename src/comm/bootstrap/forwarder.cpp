#include "comm/bootstrap/forwarder.hpp"

#include <utility>

namespace tacc {

void Forwarder::serve(std::span<const pollfd> sockets, Channel& parent) {
  branches_.serve(sockets, phase_);
  if (!arrivals_.empty()) parent.queue(MessageKind::arrivals, makePayload(std::exchange(arrivals_, {})));
  if (!parts_.empty()) parent.queue(MessageKind::parts, makePayload(std::exchange(parts_, {})));
}

void Forwarder::examine(const Arrival& arrival) {
  if (arrival.who.rank < self_.ranks) return;
  fail(taccInvalidUsage, "{} is rank {} of {}: ranks count from 0", describePlace(arrival.who, true), arrival.who.rank,
       self_.ranks);
}

void Forwarder::arrive(const Arrival& arrival) {
  Arrival onward = arrival;
  onward.elsewhere = 1;  // this rank is on another host than rank 0
  const auto bytes = std::as_bytes(std::span(&onward, 1));
  arrivals_.insert(arrivals_.end(), bytes.begin(), bytes.end());
}

void Forwarder::complete(const Completion& own, const InetAddress::V6& address, double timeoutSeconds,
                         const Interrupt& interrupt) {
  branches_.reception().close();
  phase_ = Branches::Phase::gathering;
  Completion onward{own.allUnix, address, {static_cast<int>(self_.rank)}};
  onward.route.insert(onward.route.end(), own.route.begin(), own.route.end());
  scatter(MessageKind::complete, payloadOf(onward), "init", timeoutSeconds, interrupt);
}

void Forwarder::scatter(MessageKind kind, const Payload& payload, std::string_view operation, double timeoutSeconds,
                        const Interrupt& interrupt) {
  const Deadline deadline(timeoutSeconds);
  branches_.queue(kind, [&](const Branches::Branch&) { return Answer{payload, {}}; });
  while (branches_.hasOutput()) {
    if (deadline.passed())
      fail(taccTimeout, "{}: ranks behind gateway {} did not take the answer within {} s", operation, self_.rank,
           timeoutSeconds);
    Deadline next = deadline;
    std::vector<pollfd> sockets;
    branches_.addDescriptors(sockets, Branches::Phase::scattering, next);
    waitFor(sockets, interrupt, next);
    branches_.serve(sockets, Branches::Phase::scattering);
  }
}

std::vector<ControlTree::Branch> Forwarder::release() {
  std::vector<ControlTree::Branch> released;
  for (Branches::Branch& branch : branches_.all())
    released.push_back({std::move(branch.channel), branch.rank(), std::move(branch.behind)});
  branches_.all().clear();
  return released;
}

}  // namespace tacc
