// Rank 0 while the others join, gather and leave for the control plane, and one or two of them lie: every lie is an
// Error, and what is handed on names ranks that exist.
//
// Input: steps of the liars, made whenever rank 0 waits. 0: one joins (its rank, whether it stays); 1: a message (who,
// kind, descriptors, payload); 2: raw bytes; 3: one closes; 4: rank 0 has a look.
#include <memory>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/connect.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/control/control_plane.hpp"
#include "comm/hosts.hpp"
#include "fuzz/hostile_peer.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr int ranks = 4, steps = 5;
constexpr std::size_t mostPeers = 8;
constexpr double patience = 20;
constexpr int firstKind = static_cast<int>(MessageKind::challenge), lastKind = static_cast<int>(MessageKind::verdict);

const taccUniqueId& id() {
  static const taccUniqueId made = makeHostUniqueId();
  return made;
}

class Script {
 public:
  explicit Script(Input input) : input_(input), contents_(openUniqueId(id())) {}

  /// Steps until rank 0 is to look. Ends what it waits for when there are none left, which is what the time-out does.
  void play() {
    for (auto& [peer, who] : joining_) peer->answer(contents_.secret, who);
    joining_.clear();
    while (!input_.isOver())
      if (step()) return;
    if (endings_++ < 2) return;  // what came last is to be read
    fail(taccTimeout, "the script is over");
  }

 private:
  bool step() {
    switch (input_.below(steps)) {
      case 0: {
        Introduction who = introduceSelf(ranks, 1 + input_.below(ranks + 1));
        who.stays = input_.below(2) == 0 ? 0U : 1U;
        who.port = input_.value<std::uint16_t>();
        if (peers_.size() == mostPeers) return false;
        Attempt attempt = connectUnix(rendezvousName(contents_));
        if (!attempt.socket.valid()) return false;
        peers_.push_back(std::make_unique<HostilePeer>(std::move(attempt.socket)));
        joining_.emplace_back(peers_.back().get(), who);
        return true;
      }
      case 1: {
        HostilePeer* peer = chosen();
        const auto kind = static_cast<MessageKind>(firstKind + input_.below(lastKind - firstKind + 2));
        const int descriptors = input_.below(8) == 0 ? input_.below(4) : 0;
        std::vector<std::byte> payload = payloadIn(input_, ranks);
        if (peer != nullptr) peer->send(kind, std::move(payload), descriptors);
        return false;
      }
      case 2: {
        HostilePeer* peer = chosen();
        const auto some = input_.bytes(input_.byte());
        if (peer != nullptr) peer->sendRaw(some);
        return false;
      }
      case 3:
        if (HostilePeer* peer = chosen()) peer->close();
        return false;
      default:
        for (const auto& peer : peers_) peer->listen();
        return true;
    }
  }

  HostilePeer* chosen() {
    const std::size_t number = input_.byte();
    return peers_.empty() ? nullptr : peers_[number % peers_.size()].get();
  }

  Input input_;
  UniqueIdContents contents_;
  std::vector<std::unique_ptr<HostilePeer>> peers_;
  std::vector<std::pair<HostilePeer*, Introduction>> joining_;
  int endings_ = 0;
};

void useTree(Script& script, ControlTree tree) {
  std::vector<RankIdentity> who(ranks);
  for (RankIdentity& one : who) one.hostName.fill('h');
  ControlPlane plane(0, who, std::move(tree));
  plane.reportStuck("was in call 7");
  for (int look = 0; look < 4; ++look) {
    script.play();
    plane.poll([] { return std::string("was in call 7"); });
  }
}

void run(Input input) {
  Script script(input);
  Bootstrap bootstrap(id(), ranks, 0, patience, {}, {.idleWork = [&script] { script.play(); }});
  const auto values = bootstrap.gatherValues(std::uint64_t{7});
  require(values.size() == ranks, "another number of values than of ranks");
  const auto strings = bootstrap.allGatherStrings(std::vector<std::byte>(3));
  require(strings.size() == ranks, "another number of strings than of ranks");
  if (bootstrap.allUnix()) {
    (void)bootstrap.broadcastDescriptor(0);
  }
  useTree(script, bootstrap.releaseTree());
}

}  // namespace

std::vector<Bytes> seeds() {
  const auto join = [](Output& output, int rank) {
    output.byte(0).byte(rank - 1).byte(0).value(std::uint16_t{0}).byte(4);
  };
  const auto message = [](Output& output, int peer, MessageKind kind) -> Output& {
    return output.byte(1).byte(peer).byte(static_cast<int>(kind) - firstKind).byte(1);
  };
  const auto gatherWord = [&](Output& output, int peer, MessageKind kind, int word) {
    message(output, peer, kind).byte(3).byte(1).byte(0).byte(word);
  };
  std::vector<Bytes> corpus;
  Output star;
  for (int rank = 1; rank < ranks; ++rank) join(star, rank);
  star.byte(4);
  for (int peer = 0; peer < 3; ++peer) gatherWord(star, peer, MessageKind::gather, 7);
  star.byte(4);
  for (int peer = 0; peer < 3; ++peer) gatherWord(star, peer, MessageKind::gather, 2);  // the sizes of strings
  star.byte(4);
  for (int peer = 0; peer < 3; ++peer)
    message(star, peer, MessageKind::gather).byte(0).byte(3).byte('a').byte('b').byte('c');
  star.byte(4).byte(4);
  for (int peer = 0; peer < 3; ++peer) message(star, peer, MessageKind::state).byte(3).byte(1).byte(0).byte(peer + 1);
  star.byte(4);
  corpus.push_back(star.take());

  Output tree;
  join(tree, 1);
  message(tree, 0, MessageKind::arrivals).byte(1).byte(2);
  tree.byte(2).byte(0).byte(1).byte(1).byte(3).byte(0).byte(1).byte(2).byte(4);
  message(tree, 0, MessageKind::gather).byte(3).byte(1).byte(0).byte(7);
  message(tree, 0, MessageKind::parts).byte(2).byte(2);
  for (int rank = 2; rank < 4; ++rank) {
    tree.byte(0).byte(0);
    for (int i = 0; i < 8; ++i) tree.byte(1);
    tree.byte(rank).byte(1);
  }
  tree.byte(4);
  corpus.push_back(tree.take());
  for (const MessageKind kind :
       {MessageKind::failure, MessageKind::report, MessageKind::announced, MessageKind::descriptor}) {
    Output told;
    for (int rank = 1; rank < ranks; ++rank) join(told, rank);
    message(told, 1, kind).byte(0).byte(8).range(Bytes(8, 'x')).byte(4);
    corpus.push_back(told.take());
  }
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tacc::fuzz::mayRefuse([&] { tacc::fuzz::run({data, size}); });
}
