// The key-value store that a launcher's process manager keeps for a job: PMI or PMIx.
#pragma once

#include <chrono>
#include <string>

#include "comm/launch/launch_environment.hpp"

namespace tacc {

using StoreDeadline = std::chrono::steady_clock::time_point;

/// What rank 0 gives as `own` (one word, below 1000 bytes), on all ranks; collective over the job, once per process.
/// One that has thrown taccTimeout may be called again and goes on with what it waited for; rank 0's first word stays.
/// Throws taccSystemError where the store cannot be reached.
std::string shareThroughStore(const Launch& launch, const std::string& own, StoreDeadline deadline);

/// By PMI-1's lines over the socket PMI_FD, which the process has from Hydra. Its ranks meet in a barrier.
std::string shareByPmi(const Launch& launch, const std::string& own, StoreDeadline deadline);

/// The same over this socket, for tests.
std::string shareByPmi(int socket, const Launch& launch, const std::string& own, StoreDeadline deadline);

/// By libpmix, which is loaded for it. All ranks meet in a fence.
std::string shareByPmix(const Launch& launch, const std::string& own, StoreDeadline deadline);

}  // namespace tacc
