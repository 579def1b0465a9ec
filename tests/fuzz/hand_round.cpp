// Whatever datagrams come while library memory is handed round: what is received is of ranks that give, no more than a
// rank may give, and no descriptor stays open.
//
// Input: who gives, then datagrams: descriptors beside it, whether its proof holds and of which rank, its bytes.
#include "transports/shm/hand_round.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "fuzz/memory_sockets.hpp"
#include "fuzz/target.hpp"
#include "support/stranger_datagram.hpp"

namespace tacc::fuzz {
namespace {

constexpr int ranks = 3, self = 0;
constexpr std::size_t mostDatagrams = 64, entryBytes = 2 * sizeof(std::uint64_t);
constexpr std::uint64_t firstRound = 0;

const Key& roundKey() {
  static const Key key = makeNonce();
  return key;
}

std::string ownName() {
  const Proof hash = keyedHash(roundKey(), "tacc: round name", {tacc::bytesOf(firstRound), tacc::bytesOf(self)});
  std::string name = "tacc-h-";
  for (std::size_t i = 0; i < 16; ++i) name += fmt::format("{:02x}", hash[i]);
  return name;
}

Bytes proofOf(int from) {
  const Proof proof =
      keyedHash(roundKey(), "tacc: round pass", {tacc::bytesOf(firstRound), tacc::bytesOf(from), tacc::bytesOf(self)});
  return {proof.begin(), proof.end()};
}

void sendAll(int socket, Input& input) {
  static const AbstractAddress address(ownName());
  for (std::size_t sent = 0; sent < mostDatagrams && !input.isOver(); ++sent) {
    const auto descriptors = static_cast<std::size_t>(input.below(33));
    const int named = input.below(ranks + 1);  // the last: no proof
    const std::size_t length = input.byte();
    Bytes bytes = named < ranks ? proofOf(named) : Bytes{};
    const auto rest = input.bytes(length);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    (void)test::sendAsStranger(socket, address, std::as_bytes(std::span(bytes)), descriptors, socket);
  }
}

void run(Input input) {
  static const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int before = openDescriptors();
  const int flags = input.byte();
  const std::vector<bool> givers{false, (flags & 1) != 0, (flags & 2) != 0};
  HandRound round(roundKey(), ranks, self);
  bool isSent = false;
  try {
    const auto received = round.run({}, givers, [&](int, const std::function<bool()>&) {
      if (isSent) fail(taccTimeout, "nothing more comes");
      isSent = true;
      sendAll(socket, input);
    });
    std::array<std::size_t, ranks> pieces{};
    for (const ReceivedMemory& one : received) {
      require(one.rank > 0 && one.rank < ranks && givers[static_cast<std::size_t>(one.rank)],
              "of a rank that gives nothing");
      require(++pieces[static_cast<std::size_t>(one.rank)] <= HandRound::mostOffered, "more than a rank may give");
      require(one.fd.valid(), "memory without a descriptor");
    }
  } catch (const Error&) {
    // What does not hold, or too little.
  }
  require(openDescriptors() == before, "a descriptor stays open");
}

/// As ranks send it: the rank, how many pieces, and two entries.
Output& datagram(Output& output, int descriptors, int named, int rank, int pieces) {
  output.byte(descriptors).byte(named).byte(static_cast<int>(2 * sizeof(std::int32_t) + 2 * entryBytes));
  return output.value(std::int32_t{rank}).value(std::int32_t{pieces}).range(Bytes(2 * entryBytes, 1));
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> corpus;
  Output whole;
  datagram(datagram(whole.byte(3), 2, 1, 1, 2), 1, 2, 2, 1);
  corpus.push_back(whole.take());
  Output strangers;
  datagram(datagram(strangers.byte(1), 32, ranks, 1, 2), 16, 2, 1, 1).byte(0).byte(ranks).byte(3).byte(1);
  datagram(strangers, 1, 1, 1, 1);
  corpus.push_back(strangers.take());
  Output lying;
  datagram(lying.byte(1), 2, 1, 1, 1);
  corpus.push_back(lying.take());
  Output greedy;
  datagram(greedy.byte(1), 16, 1, 1, 1 << 20);
  corpus.push_back(greedy.take());
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tacc::fuzz::run(tacc::fuzz::Input(data, size));
  return 0;
}
