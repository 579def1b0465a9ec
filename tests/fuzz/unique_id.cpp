// The 128 bytes that a program hands around: any are an Error or an id, also those whose check is right.
//
// Input: 1 if the check is made right, the bytes.
#include "comm/bootstrap/unique_id.hpp"

#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

void open(Input input) {
  const bool isSealed = input.below(2) == 1;
  auto id = input.value<taccUniqueId>();
  if (isSealed) {
    UniqueIdContents contents;
    std::memcpy(&contents, id.internal, sizeof contents);
    id = sealUniqueId(contents);
  }
  const UniqueIdContents contents = openUniqueId(id);
  require(addressesIn(contents).size() <= contents.ipv4.size() + 1, "addresses out of nothing");
  (void)describeAddressesIn(contents);
  (void)rendezvousName(contents);
  (void)gatewayName(contents, contents.host);
}

}  // namespace

std::vector<Bytes> seeds() {
  const taccUniqueId network = makeUniqueId(), host = makeHostUniqueId();
  return {Output().byte(0).value(network).take(), Output().byte(1).value(network).take(),
          Output().byte(0).value(host).take(), Output().byte(1).value(host).take()};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tacc::fuzz::mayRefuse([&] { tacc::fuzz::open({data, size}); });
}
