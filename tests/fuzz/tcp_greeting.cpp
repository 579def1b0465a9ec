// Who connects to a rank's data port, and the address that a rank tells: nobody gets in without the key.
//
// Input: 1 if the proof is right, a greeting in pieces of the next byte's size; then the bytes of an address.
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>

#include "fuzz/target.hpp"
#include "transports/tcp/tcp_visitors.hpp"

namespace tacc::fuzz {
namespace {

constexpr std::size_t ranks = 4;
constexpr int rank = 1;
constexpr int other = 2;
const Key secret{1, 2, 3};

/// A socket at which nobody but this process can connect.
struct Door {
  FileDescriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  sockaddr_un address{};
  socklen_t length = sizeof(sa_family_t);  // the kernel chooses a name

  Door() {
    address.sun_family = AF_UNIX;
    require(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) == 0, "no name");
    require(::listen(listener.get(), 8) == 0, "cannot listen");
    length = sizeof address;
    (void)::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
  }
  FileDescriptor connect() const {
    FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    require(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0, "cannot connect");
    return socket;
  }
};

/// Both ends of a pair of ranks that know each other's public key.
struct Pair {
  TcpCredentials own{rank, ranks, secret}, peer{other, ranks, secret};
  Pair() {
    own.setPublicKey(other, peer.publicKey());
    peer.setPublicKey(rank, own.publicKey());
  }
};

void visit(Input input) {
  static const Door door;
  static Pair pair;
  const bool isRight = input.below(2) == 1;
  const std::size_t piece = 1U + input.byte();
  auto hello = input.value<TcpHello>();
  TcpVisitors visitors(pair.own);
  {
    const FileDescriptor peer = door.connect();
    const auto visitor = visitors.accept(door.listener.get());
    require(visitor.has_value(), "nobody came");
    TcpChallenge challenge;
    require(::recv(peer.get(), &challenge, sizeof challenge, MSG_WAITALL) == sizeof challenge, "no challenge");
    if (isRight) hello = greetBack(*pair.peer.keyWith(rank), challenge, other, rank);
    for (std::size_t sent = 0; sent < sizeof hello && !visitors.isEmpty(); sent += piece) {
      (void)!::send(peer.get(), reinterpret_cast<const char*>(&hello) + sent, std::min(piece, sizeof hello - sent),
                    MSG_NOSIGNAL);
      visitors.listen(*visitor);
    }
    const auto guest = visitors.nextGuest();
    require(guest.has_value() == isRight, "a guest without a proof, or a proof without a guest");
    require(!guest || guest->rank == other, "a guest that is not who proved it");
  }
  const auto rest = input.restAsText();
  const auto* bytes = reinterpret_cast<const std::byte*>(rest.data());
  const std::vector<std::byte> packed(bytes, bytes + rest.size());
  if (const auto address = unpackTcpAddress(packed))
    require(packTcpAddress(*address) == packed, "an address that is packed again differs");
}

}  // namespace

std::vector<Bytes> seeds() {
  TcpHello hello;
  hello.from = other;
  hello.to = rank;
  const std::vector<std::byte> address = packTcpAddress({4711, secret, {InetAddress::V6{1}, InetAddress::V6{2}}});
  return {Output().byte(1).byte(3).value(hello).range(address).take(),
          Output().byte(0).byte(255).value(hello).range(address).take(), Output().byte(0).byte(0).take()};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tacc::fuzz::visit({data, size});
  return 0;
}
