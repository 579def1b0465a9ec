// The transport that the program brings, over a table that only writes down what it is asked for.
#include <gmock/gmock.h>

#include <array>
#include <vector>

#include "tacc/transport.h"
#include "transports/transport_functions.hpp"

namespace tacc {
namespace {

struct Record {
  std::vector<std::uint32_t> started, cancelled;  // tags
  taccResult_t answer = taccSuccess;              // of cancel
};

Record& recordOf(void* context) { return *static_cast<Record*>(context); }

taccResult_t start(void* context, std::uint32_t tag, void** request) {
  recordOf(context).started.push_back(tag);
  *request = reinterpret_cast<void*>(static_cast<std::uintptr_t>(tag));
  return taccSuccess;
}

taccTransport_t tableFor(Record& record) {
  taccTransport_t table{};
  table.size = sizeof table;
  table.version = TACC_TRANSPORT_VERSION;
  table.name = "recorder";
  table.context = &record;
  table.maxTag = 1'000'000;
  table.send = [](void* context, int, std::uint32_t tag, const void*, std::size_t, void** request) {
    return start(context, tag, request);
  };
  table.receive = [](void* context, int, std::uint32_t tag, void*, std::size_t, void** request) {
    return start(context, tag, request);
  };
  table.test = [](void*, void**, int*, std::size_t*) { return taccSuccess; };
  table.cancel = [](void* context, void** request) {
    recordOf(context).cancelled.push_back(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(*request)));
    return recordOf(context).answer;
  };
  return table;
}

TEST(PluginTransport, cancelsReceivesAtOnceAndSendsAtItsEnd) {
  Record record;
  const taccTransport_t table = tableFor(record);
  std::array<NetworkRequest, 4> requests;
  std::array<std::byte, 16> data{};
  {
    const auto transport = makeMpiTransport({.rank = 0, .ranks = 2, .interfaces = {}, .plugin = &table});
    transport->send(1, 1, data.data(), 8, requests[0]);
    transport->receive(1, 2, data.data(), 8, requests[1]);
    transport->receive(1, 3, data.data(), 8, requests[2]);
    transport->send(1, 4, data.data(), 8, requests[3]);
    transport->cancelReceives();
    EXPECT_THAT(record.cancelled, testing::UnorderedElementsAre(2, 3));
    transport->cancelReceives();
    EXPECT_EQ(record.cancelled.size(), 2u);
  }
  EXPECT_THAT(record.cancelled, testing::UnorderedElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace tacc
