// Ranks for the tests of the C++ interface, and what calls throw.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tacc/tacc.hpp"

namespace taccxx::test {

/// Runs `body(communicator)` in a thread for each of `ranks` ranks. An exception is a failure.
template <class Body>
void onRanks(int ranks, const Body& body) {
  std::vector<Communicator> comms = Communicator::initAll(ranks);
  std::vector<std::thread> threads;
  for (Communicator& comm : comms) {
    threads.emplace_back([&] {
      try {
        body(comm);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// "RESULT: SENTENCE" of the Error that `call` throws; "" when it throws none.
template <class Call>
std::string errorOf(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(taccGetErrorString(error.result())) + ": " + error.what();
  }
  return "";
}

}  // namespace taccxx::test
