// A rank of the job that lies on the connections that init left open: what it sends is an Error at most, and names
// ranks that exist.
//
// Input: which of three places in the tree 0 - 1 - {2, 3}, 0 - 4 this rank has; then steps. 0: poll; 1 to 3: a message
// over a connection (which, kind, rank, length, bytes); 4: raw bytes; 5: what this rank does by itself; 6: a connection
// closes; 7: a notice (rank, presence).
#include "comm/control/control_plane.hpp"

#include <sys/socket.h>

#include <memory>
#include <string>

#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr int ranks = 5, steps = 8, places = 3, ownDoings = 6;
constexpr int firstKind = static_cast<int>(MessageKind::challenge), lastKind = static_cast<int>(MessageKind::verdict);

std::vector<RankIdentity> identities() {
  std::vector<RankIdentity> who(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    who[r].process = static_cast<int>(100 + r);
    who[r].hostName.fill('h');  // as a rank that lies tells it: without an end
  }
  return who;
}

class Liars {
 public:
  explicit Liars(int place) : rank_(place == 2 ? 4 : place) {
    ControlTree tree;
    if (rank_ != 0) {
      tree.route = {0};
      tree.up = connect();
    } else {
      tree.branches.push_back({connect(), 1, {2, 3}});
      tree.branches.push_back({connect(), 4, {}});
      tree.parents = {-1, 0, 1, 1, 0};
    }
    if (rank_ == 1) {
      tree.branches.push_back({connect(), 2, {}});
      tree.branches.push_back({connect(), 3, {}});
    }
    plane_ = std::make_unique<ControlPlane>(rank_, identities(), std::move(tree));
  }

  void step(Input& input) {
    switch (input.below(steps)) {
      case 0:
        return poll();
      case 1:
      case 2:
      case 3:
        return tell(input);
      case 4: {
        const auto some = input.bytes(input.byte());
        FileDescriptor& peer = peers_[input.byte() % peers_.size()];
        if (peer.valid()) (void)!::send(peer.get(), some.data(), some.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        return;
      }
      case 5:
        return act(input.below(ownDoings));
      case 6:
        return peers_[input.byte() % peers_.size()].reset();
      default: {
        const std::size_t peer = input.byte() % peers_.size();
        std::vector<std::byte> notice(8);
        const auto rank = static_cast<std::int32_t>(input.value<std::int8_t>());
        std::memcpy(notice.data(), &rank, sizeof rank);
        notice[4] = std::byte{input.byte()};
        send(peer, MessageKind::gone, std::move(notice));
      }
    }
  }

  void poll() {
    plane_->poll([] { return std::string("was in call 7"); });
  }

 private:
  Channel connect() {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "no socket pair");
    peers_.emplace_back(ends[0]);
    Channel channel{FileDescriptor(ends[1])};
    channel.trust();
    return channel;
  }

  void send(std::size_t peer, MessageKind kind, std::vector<std::byte> payload) {
    if (!peers_[peer].valid()) return;
    Channel channel(std::move(peers_[peer]));
    channel.queue(kind, makePayload(std::move(payload)));
    (void)channel.flush();
    peers_[peer] = FileDescriptor(duplicate(channel.fd()));
  }

  void tell(Input& input) {
    const std::size_t peer = input.byte() % peers_.size();
    const auto kind = static_cast<MessageKind>(firstKind + input.below(lastKind - firstKind + 2));
    const int rank = input.value<std::int8_t>();
    std::vector<std::byte> payload(sizeof rank);
    std::memcpy(payload.data(), &rank, sizeof rank);
    for (const std::uint8_t byte : input.bytes(input.byte())) payload.push_back(std::byte{byte});
    if (rank == INT8_MIN) payload.resize(input.byte() % (payload.size() + 1));
    send(peer, kind, std::move(payload));
  }

  void act(int what) {
    switch (what) {
      case 0:
        return plane_->reportStuck("was in call 7");
      case 1:
        return plane_->announce(Error(taccSystemError, "no memory"));
      case 2:
        return plane_->sayFarewell();
      case 3:
        (void)plane_->nameOfRankZero();
        return require(plane_->deadRank().value_or(0) < ranks, "a rank that is none has died");
      case 4:
        (void)plane_->leftRank({0, 1, 2, 3, 4});
        return;
      default:
        (void)plane_->isAlone();
    }
  }

  int rank_;
  std::vector<FileDescriptor> peers_;
  std::unique_ptr<ControlPlane> plane_;
};

}  // namespace

std::vector<Bytes> seeds() {
  const auto message = [](Output& output, int peer, MessageKind kind, int rank, std::string_view text) {
    output.byte(1).byte(peer).byte(static_cast<int>(kind) - firstKind).byte(rank);
    output.byte(static_cast<int>(text.size())).range(text).byte(0);
  };
  std::vector<Bytes> corpus;
  for (int place = 0; place < places; ++place) {
    for (const MessageKind kind :
         {MessageKind::announced, MessageKind::failure, MessageKind::report, MessageKind::farewell, MessageKind::gone,
          MessageKind::stuck, MessageKind::query, MessageKind::state, MessageKind::verdict}) {
      Output output;
      output.byte(place);
      message(output, 0, kind, 3, std::string_view("\0\0\0\0it failed", 13));
      message(output, 1, kind, 2, "more");
      output.byte(5).byte(3).byte(6).byte(0).byte(0).byte(5).byte(4);
      corpus.push_back(output.take());
    }
    Output inquest;
    inquest.byte(place).byte(5).byte(0).byte(0);
    for (int rank = 1; rank < ranks; ++rank) message(inquest, rank == 4 ? 1 : 0, MessageKind::state, rank, "was idle");
    corpus.push_back(inquest.take());
    Output notices;
    notices.byte(place);
    for (int rank = -1; rank <= ranks; ++rank) notices.byte(7).byte(rank).byte(rank).byte(rank & 3).byte(0);
    corpus.push_back(notices.take());
  }
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tacc::fuzz::Input input(data, size);
  tacc::fuzz::Liars liars(input.below(tacc::fuzz::places));
  return tacc::fuzz::mayRefuse([&] {
    for (int step = 0; step < 64 && !input.isOver(); ++step) liars.step(input);
    liars.poll();
  });
}
