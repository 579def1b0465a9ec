#include "comm/launch/launch_card.hpp"

#include <sodium.h>

#include <array>
#include <chrono>
#include <mutex>

#include "comm/communicator.hpp"
#include "comm/hosts.hpp"
#include "comm/launch/launch_store.hpp"
#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/undying.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/interfaces.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

constexpr std::string_view mark = "tacc-card-1";
constexpr std::size_t secretDigits = 64, mostAddresses = 5;

/// What a process knows of its job.
struct Met {
  std::mutex mutex;
  std::optional<LaunchCard> card;
  FileDescriptor port;  // rank 0's, bound for as long as the process lives
};

/// Communicators may be made until the process ends.
Met& met() {
  static Undying<Met> only;
  return only.get();
}

std::string randomDigits() {
  if (::sodium_init() < 0) fail(taccSystemError, "libsodium finds no source of random numbers");
  std::array<unsigned char, secretDigits / 2> bytes;
  ::randombytes_buf(bytes.data(), bytes.size());
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

InetAddress withPort(const InetAddress& address, std::uint16_t port) {
  return address.isV4() ? InetAddress(address.v4(), port) : InetAddress(address.v6(), port);
}

LaunchCard makeCard(const Environment& environment, FileDescriptor& port) {
  port = bindTcp(0);
  if (!port.valid())
    failErrno("rank 0: no TCP port is free on host {} at which the other ranks can meet it", hostName());
  LaunchCard card;
  for (const InterfaceAddress& one : chooseAddresses(interfaceAddresses(), environment.interfaces)) {
    const InetAddress& address = one.address;
    if (card.addresses.size() == mostAddresses) break;
    card.addresses.push_back(withPort(address, portOf(port.get())));
  }
  if (card.addresses.empty())
    fail(taccSystemError, "rank 0: host {} has no network interface at which other hosts can reach it", hostName());
  card.secret = randomDigits();
  return card;
}

}  // namespace

std::string LaunchCard::encode() const {
  std::string text(mark);
  for (const InetAddress& address : addresses) text += ";" + address.text();
  return text + ";" + secret;
}

std::optional<LaunchCard> LaunchCard::decode(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; end != std::string_view::npos;
       text.remove_prefix(end == std::string_view::npos ? 0 : end + 1))
    words.push_back(text.substr(0, end = text.find(';')));
  if (words.size() < 3 || words.size() > mostAddresses + 2 || words.front() != mark) return std::nullopt;
  LaunchCard card;
  card.secret = words.back();
  if (card.secret.size() != secretDigits || card.secret.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    const MeetingPoint point = parseMeetingPoint(words[i]);
    const auto address = InetAddress::parse(point.host);
    if (!address) return std::nullopt;
    card.addresses.push_back(withPort(*address, point.port));
  }
  return card;
}

std::vector<InetAddress> meetThroughStore(Launch& launch, const Environment& environment) {
  Met& job = met();
  const std::lock_guard<std::mutex> guard(job.mutex);
  if (!job.card) {
    std::string own;
    std::optional<LaunchCard> made;
    if (launch.rank == 0) {
      made = makeCard(environment, job.port);
      own = made->encode();
    }
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(
                              environment.initTimeout.value_or(CommConfig().initTimeout)));
    const std::string text = shareThroughStore(launch, own, deadline);
    job.card = LaunchCard::decode(text);
    if (!job.card)
      fail(taccSystemError,
           "rank {}: what stands in the store of {} is no place at which rank 0 can be met: \"{}\"; do all ranks have "
           "one version of tacc?",
           launch.rank, launch.launcher, text.substr(0, 40));
  }
  const InetAddress& first = job.card->addresses.front();
  launch.meeting = {first.host(), first.port(), "the store of " + launch.launcher};
  launch.key.push_back("secret=" + job.card->secret);
  launch.isKeySecret = true;
  return job.card->addresses;
}

}  // namespace tacc
