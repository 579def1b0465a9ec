// A gateway between a parent and ranks behind it that lie: what it hands up and keeps names ranks that exist.
//
// Input: steps of the liars. 0: one joins (its rank, over TCP); 1: a message (who, kind, payload); 2: raw bytes; 3: one
// closes; 4: the gateway has a look; 5: the parent says that all have joined.
#include <sys/socket.h>

#include <memory>

#include "comm/bootstrap/connect.hpp"
#include "comm/bootstrap/forwarder.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/control/control_plane.hpp"
#include "comm/hosts.hpp"
#include "fuzz/hostile_peer.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr int ranks = 5, self = 1, steps = 6;
constexpr std::size_t mostPeers = 6;
constexpr double patience = 5;
constexpr int firstKind = static_cast<int>(MessageKind::challenge), lastKind = static_cast<int>(MessageKind::verdict);

class Script {
 public:
  explicit Script(Input input)
      : input_(input), contents_(openUniqueId(makeHostUniqueId())), name_(gatewayName(contents_, 7)) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "no socket pair");
    up_ = Channel(FileDescriptor(ends[0]));
    up_.trust();
    parent_.emplace(FileDescriptor(ends[1]));
    auto doors = listenAsGateway(name_);
    require(doors.has_value(), "the name is taken");
    forwarder_ = std::make_unique<Forwarder>(std::move(*doors), introduceSelf(ranks, self), contents_.secret, 2);
  }

  void run() {
    for (int made = 0; made < 64 && !input_.isOver(); ++made) step();
    look();
  }

 private:
  void step() {
    switch (input_.below(steps)) {
      case 0: {
        const Introduction who = introduceSelf(ranks, input_.below(ranks + 2));
        if (peers_.size() == mostPeers || plane_) return;
        Attempt attempt = connectUnix(name_);
        if (!attempt.socket.valid()) return;
        peers_.push_back(std::make_unique<HostilePeer>(std::move(attempt.socket)));
        look();  // the challenge
        peers_.back()->answer(contents_.secret, who);
        return look();
      }
      case 1: {
        HostilePeer* peer = chosen();
        const auto kind = static_cast<MessageKind>(firstKind + input_.below(lastKind - firstKind + 2));
        std::vector<std::byte> payload = payloadIn(input_, ranks);
        if (peer != nullptr) peer->send(kind, std::move(payload));
        return;
      }
      case 2: {
        HostilePeer* peer = chosen();
        const auto some = input_.bytes(input_.byte());
        if (peer != nullptr) peer->sendRaw(some);
        return;
      }
      case 3:
        if (HostilePeer* peer = chosen()) peer->close();
        return;
      case 4:
        return look();
      default:
        return complete();
    }
  }

  void look() {
    parent_->listen();
    if (plane_) return plane_->poll([] { return std::string("was in call 7"); });
    std::vector<pollfd> sockets;
    Deadline now(0);
    forwarder_->addDescriptors(sockets, now);
    waitFor(sockets, interrupt_, Deadline(0));
    forwarder_->serve(sockets, up_);
    (void)up_.flush();
  }

  void complete() {
    if (plane_) return;
    forwarder_->complete({false, {}, {0}}, {}, patience, interrupt_);
    ControlTree tree;
    tree.route = {0};
    tree.up = std::move(up_);
    tree.branches = forwarder_->release();
    std::vector<RankIdentity> who(ranks);
    for (const ControlTree::Branch& branch : tree.branches) {
      require(branch.rank >= 0 && branch.rank < ranks, "a branch to a rank that is none");
      for (const int rank : branch.behind) require(rank >= 0 && rank < ranks, "a rank that is none behind a branch");
    }
    plane_ = std::make_unique<ControlPlane>(self, who, std::move(tree));
  }

  HostilePeer* chosen() {
    const std::size_t number = input_.byte();
    return peers_.empty() ? nullptr : peers_[number % peers_.size()].get();
  }

  Input input_;
  UniqueIdContents contents_;
  std::string name_;
  Interrupt interrupt_{self};
  Channel up_{FileDescriptor()};
  std::optional<HostilePeer> parent_;
  std::unique_ptr<Forwarder> forwarder_;
  std::unique_ptr<ControlPlane> plane_;
  std::vector<std::unique_ptr<HostilePeer>> peers_;
};

}  // namespace

std::vector<Bytes> seeds() {
  const auto message = [](Output& output, int peer, MessageKind kind) -> Output& {
    return output.byte(1).byte(peer).byte(static_cast<int>(kind) - firstKind);
  };
  std::vector<Bytes> corpus;
  for (const MessageKind kind : {MessageKind::gather, MessageKind::failure, MessageKind::report, MessageKind::gone}) {
    Output output;
    output.byte(0).byte(2).byte(0).byte(3).byte(4);
    message(output, 0, MessageKind::arrivals).byte(1).byte(1).byte(4).byte(0).byte(1).byte(2).byte(4);
    message(output, 0, MessageKind::parts).byte(2).byte(1).byte(0).byte(1).byte(4);
    for (int i = 0; i < 4; ++i) output.byte(i);
    output.byte(4).byte(1).byte(4);
    if (kind == MessageKind::gone) output.byte(5);
    message(output, 1, kind).byte(0).byte(8).range(Bytes(8, 3)).byte(4).byte(5).byte(4).byte(3).byte(0).byte(4);
    corpus.push_back(output.take());
  }
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tacc::fuzz::mayRefuse([&] {
    tacc::fuzz::Script script({data, size});
    script.run();
  });
}
