// The program's own MPI as a transport. Every rank of an mpiexec runs all tests; rank 0 reports for all.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "tacc/transport.h"
#include "transports/network_transport.hpp"

extern "C" taccResult_t fillMpiTable(taccTransport_t* table);

namespace tacc {
namespace {

int rank() {
  int result = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &result);
  return result;
}

int ranks() {
  int result = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &result);
  return result;
}

const NetworkTransportKind& mpiKind() { return networkTransports().back(); }

std::unique_ptr<NetworkTransport> connect() {
  taccTransport_t table;
  if (fillMpiTable(&table) != taccSuccess) throw std::runtime_error("no table");
  NetworkOptions options;
  options.rank = rank();
  options.ranks = ranks();
  options.plugin = &table;
  return mpiKind().make(options);
}

void complete(NetworkTransport& transport, const std::vector<NetworkRequest>& requests) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (const NetworkRequest& request : requests) {
    while (!request.done) {
      transport.progress();
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("a message did not come");
    }
  }
}

TEST(MpiTransport, IsTheLastOfTheRegistry) {
  EXPECT_EQ(mpiKind().name, "mpi");
  EXPECT_THROW(mpiKind().make({}), Error);
}

TEST(MpiTransport, DeliversEverySizeBetweenAllPairs) {
  const std::unique_ptr<NetworkTransport> transport = connect();
  EXPECT_EQ(transport->descriptor(), -1);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{8192}, (std::size_t{64} << 10) + 1, std::size_t{8} << 20}) {
    std::vector<NetworkRequest> requests(2 * static_cast<std::size_t>(ranks()));
    std::vector<std::vector<unsigned char>> buffers;
    for (int peer = 0; peer < ranks(); ++peer) {
      buffers.emplace_back(bytes + 8, 0xEE);
      buffers.emplace_back(bytes, static_cast<unsigned char>(rank() * 16 + peer));
      if (peer == rank()) continue;
      const std::size_t at = 2 * static_cast<std::size_t>(peer);
      // The largest tag of all: it has to be shortened.
      transport->receive(peer, 0xFFFFFFFF, buffers[at].data(), bytes + 8, requests[at]);
      transport->send(peer, 0xFFFFFFFF, buffers[at + 1].data(), bytes, requests[at + 1]);
    }
    complete(*transport, requests);
    for (int peer = 0; peer < ranks(); ++peer) {
      if (peer == rank()) continue;
      const std::size_t at = 2 * static_cast<std::size_t>(peer);
      EXPECT_EQ(requests[at].bytes, bytes);
      std::vector<unsigned char> expected(bytes, static_cast<unsigned char>(peer * 16 + rank()));
      expected.resize(bytes + 8, 0xEE);
      EXPECT_EQ(buffers[at], expected) << bytes << " bytes from rank " << peer;
    }
  }
}

TEST(MpiTransport, MatchesTagsInAnyOrder) {
  const std::unique_ptr<NetworkTransport> transport = connect();
  const int next = (rank() + 1) % ranks();
  const int previous = (rank() + ranks() - 1) % ranks();
  constexpr std::uint32_t count = 200;
  std::vector<std::uint32_t> sent(count);
  std::vector<std::uint32_t> received(count);
  std::vector<NetworkRequest> requests(2 * count);
  for (std::uint32_t i = 0; i < count; ++i) {
    sent[i] = i * 7;
    transport->send(next, i, &sent[i], sizeof sent[i], requests[i]);
  }
  for (std::uint32_t i = count; i-- > 0;)
    transport->receive(previous, i, &received[i], sizeof received[i], requests[count + i]);
  complete(*transport, requests);
  EXPECT_EQ(received, sent);
}

TEST(MpiTransport, MessageThatIsTooLongIsAnError) {
  const std::unique_ptr<NetworkTransport> transport = connect();
  std::vector<std::byte> buffer(1000);
  std::vector<NetworkRequest> requests(1);
  if (rank() == 0) {
    transport->send(1, 1, buffer.data(), 1000, requests[0]);
    complete(*transport, requests);
  } else if (rank() == 1) {
    try {
      transport->receive(0, 1, buffer.data(), 500, requests[0]);
      complete(*transport, requests);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccInvalidUsage) << error.what();
      EXPECT_NE(std::string(error.what()).find("500 bytes from rank 0"), std::string::npos) << error.what();
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiTransport, EndsWithReceivesPosted) {
  std::unique_ptr<NetworkTransport> transport = connect();
  std::vector<std::byte> buffer(1 << 20, std::byte{3});
  NetworkRequest request;
  transport->receive((rank() + 1) % ranks(), 1, buffer.data(), buffer.size(), request);
  transport->progress();
  transport.reset();
  EXPECT_FALSE(request.done);
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace tacc

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // MPICH asks it for errors of every request
  testing::InitGoogleTest(&argc, argv);
  if (tacc::rank() != 0) {  // one report is enough
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());
  }
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
