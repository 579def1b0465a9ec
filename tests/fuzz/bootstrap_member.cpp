// A rank that joins at a rank 0 which lies: every lie is an Error, and what is handed on names ranks that exist.
//
// Input: steps of rank 0, made whenever the rank waits. 0: a message (kind, descriptors, payload); 1: raw bytes; 2: it
// closes; 3: the rank has a look; 4: all have joined (a route of ranks).
#include <sys/socket.h>

#include <memory>
#include <optional>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/completion.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/control/control_plane.hpp"
#include "comm/hosts.hpp"
#include "fuzz/hostile_peer.hpp"
#include "fuzz/target.hpp"
#include "transports/unix_socket.hpp"

namespace tacc::fuzz {
namespace {

constexpr int ranks = 4, self = 2, steps = 5;
constexpr double patience = 20;
constexpr int firstKind = static_cast<int>(MessageKind::challenge), lastKind = static_cast<int>(MessageKind::verdict);

/// Where rank 0 listens, for as long as this program runs.
struct RankZero {
  taccUniqueId id = makeHostUniqueId();
  UniqueIdContents contents = openUniqueId(id);
  FileDescriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};

  RankZero() {
    const AbstractAddress address(rendezvousName(contents));
    require(::bind(listener.get(), address.get(), address.size()) == 0, "the name is taken");
    require(::listen(listener.get(), 64) == 0, "cannot listen");
  }
  static const RankZero& get() {
    static const RankZero one;
    return one;
  }
};

class Script {
 public:
  explicit Script(Input input) : input_(input) {}

  void play() {
    if (peer_ && !isAdmitted_) {
      peer_->admit(RankZero::get().contents.secret, challenge_, introduceSelf(ranks, 0));
      isAdmitted_ = true;
      if (input_.below(8) != 0) peer_->send(MessageKind::admitted, {});
    }
    if (!peer_) {
      FileDescriptor socket(::accept4(RankZero::get().listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.valid()) {
        peer_.emplace(std::move(socket));
        peer_->send(MessageKind::challenge, *payloadOf(challenge_));
      }
      return;
    }
    while (!input_.isOver())
      if (step()) return;
    if (endings_++ < 2) return;
    fail(taccTimeout, "the script is over");
  }

 private:
  bool step() {
    switch (input_.below(steps)) {
      case 0: {
        const auto kind = static_cast<MessageKind>(firstKind + input_.below(lastKind - firstKind + 2));
        const int descriptors = input_.below(4) == 0 ? input_.below(4) : 0;
        peer_->send(kind, payloadIn(input_, ranks), descriptors);
        return false;
      }
      case 1:
        peer_->sendRaw(input_.bytes(input_.byte()));
        return false;
      case 2:
        peer_->close();
        return false;
      case 3:
        peer_->listen();
        return true;
      default: {
        Completion completion{input_.below(2) == 0, {}, {}};
        for (int length = 1 + input_.below(4); length > 0; --length)
          completion.route.push_back(input_.value<std::int8_t>());
        peer_->send(MessageKind::complete, *payloadOf(completion));
        return false;
      }
    }
  }

  Input input_;
  Challenge challenge_{makeNonce()};
  std::optional<HostilePeer> peer_;
  bool isAdmitted_ = false;
  int endings_ = 0;
};

void useTree(Script& script, ControlTree tree) {
  std::vector<RankIdentity> who(ranks);
  for (RankIdentity& one : who) one.hostName.fill('h');
  ControlPlane plane(self, who, std::move(tree));
  (void)plane.nameOfRankZero();
  plane.reportStuck("was in call 7");
  for (int look = 0; look < 4; ++look) {
    script.play();
    plane.poll([] { return std::string("was in call 7"); });
  }
}

void run(Input input) {
  while (FileDescriptor(::accept4(RankZero::get().listener.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid()) continue;
  Script script(input);
  Bootstrap bootstrap(RankZero::get().id, ranks, self, patience, {}, {.idleWork = [&script] { script.play(); }});
  const auto values = bootstrap.gatherValues(std::uint64_t{7});
  require(values.size() == ranks, "another number of values than of ranks");
  const auto strings = bootstrap.allGatherStrings(std::vector<std::byte>(3));
  require(strings.size() == ranks, "another number of strings than of ranks");
  (void)bootstrap.broadcast({});
  if (bootstrap.allUnix()) {
    require(bootstrap.broadcastDescriptor(-1).valid(), "no descriptor");
  }
  useTree(script, bootstrap.releaseTree());
}

}  // namespace

std::vector<Bytes> seeds() {
  const auto message = [](Output& output, MessageKind kind, int descriptors = 0) -> Output& {
    output.byte(0).byte(static_cast<int>(kind) - firstKind);
    return descriptors > 0 ? output.byte(0).byte(descriptors) : output.byte(1);
  };
  const auto words = [](Output& output, std::initializer_list<int> all) {
    output.byte(3).byte(static_cast<int>(all.size()));
    for (const int word : all) output.byte(0).byte(word);
  };
  std::vector<Bytes> corpus;
  Output whole;
  whole.byte(1).byte(4).byte(0).byte(0).byte(0).byte(3);
  words(message(whole, MessageKind::gathered), {1, 2, 3, 4});
  whole.byte(3);
  words(message(whole, MessageKind::gathered), {1, 2, 3, 2});
  whole.byte(3);
  message(whole, MessageKind::gathered).byte(0).byte(12).range(Bytes(12, 'x')).byte(3);
  message(whole, MessageKind::gathered).byte(0).byte(5).range(Bytes(5, 'x')).byte(3);
  message(whole, MessageKind::descriptor, 1).byte(0).byte(0).byte(3);
  whole.byte(3);
  words(message(whole, MessageKind::query), {});
  whole.byte(3);
  corpus.push_back(whole.take());
  for (const MessageKind kind :
       {MessageKind::failure, MessageKind::redirect, MessageKind::gone, MessageKind::verdict}) {
    Output told;
    told.byte(1).byte(4).byte(0).byte(0).byte(0).byte(3);
    message(told, kind).byte(0).byte(20).range(Bytes(20, 1)).byte(3);
    corpus.push_back(told.take());
  }
  corpus.push_back(Output().byte(1).byte(4).byte(0).byte(2).byte(1).byte(3).byte(0).byte(3).take());
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tacc::fuzz::mayRefuse([&] { tacc::fuzz::run({data, size}); });
}
