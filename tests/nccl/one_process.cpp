// A C++ program in NCCL's style: one thread holds all "devices", and makes the calls of all in groups.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "names.h"

#define NCCLCHECK(cmd)                                                                                          \
  do {                                                                                                          \
    if (const ncclResult_t r = cmd; r != ncclSuccess) {                                                         \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, ::ncclGetErrorString(r), ::ncclGetLastError(nullptr)); \
      std::exit(EXIT_FAILURE);                                                                                  \
    }                                                                                                           \
  } while (false)

namespace {

struct CommDeleter {
  void operator()(ncclComm_t comm) const { ncclCommDestroy(comm); }
};
using CommPointer = std::unique_ptr<ncclComm, CommDeleter>;

template <class T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr ncclDataType_t value = ncclFloat;
};
template <>
struct TypeOf<long long> {
  static constexpr ncclDataType_t value = ncclInt64;
};

const char* name(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "success";
    case ncclInvalidUsage:
      return "usage";
    default:
      return "other";
  }
}

/// Whether an allreduce of all devices in one group has the right sums.
template <class T>
bool sums(const std::vector<CommPointer>& comms, const std::vector<cudaStream_t>& streams) {
  const std::size_t devices = comms.size();
  const std::size_t count = 10'000;
  std::vector<std::vector<T>> send(devices, std::vector<T>(count));
  std::vector<std::vector<T>> receive(devices, std::vector<T>(count));
  for (std::size_t i = 0; i < devices; ++i) std::iota(send[i].begin(), send[i].end(), static_cast<T>(i));
  NCCLCHECK(ncclGroupStart());
  for (std::size_t i = 0; i < devices; ++i) {
    NCCLCHECK(
        ncclAllReduce(send[i].data(), receive[i].data(), count, TypeOf<T>::value, ncclSum, comms[i].get(), streams[i]));
  }
  NCCLCHECK(ncclGroupEnd());
  for (cudaStream_t stream : streams) {
    if (stream != nullptr) NCCLCHECK(taccStreamSynchronize(stream));
  }
  for (const auto& values : receive) {
    for (std::size_t j = 0; j < count; ++j) {
      if (values[j] != static_cast<T>(devices * j + devices * (devices - 1) / 2)) return false;
    }
  }
  return true;
}

}  // namespace

int main() {
  const int devices = 3;
  const int list[devices] = {0, 1, 2};
  ncclComm_t made[devices];
  NCCLCHECK(ncclCommInitAll(made, devices, list));
  const std::vector<CommPointer> comms(made, made + devices);
  std::vector<cudaStream_t> streams(devices);
  for (cudaStream_t& stream : streams) NCCLCHECK(taccStreamCreate(&stream));
  const bool isRight = sums<float>(comms, streams) && sums<long long>(comms, streams) &&
                       sums<float>(comms, std::vector<cudaStream_t>(devices, nullptr));
  for (cudaStream_t stream : streams) NCCLCHECK(taccStreamDestroy(stream));
  if (!isRight || name(ncclGroupEnd()) != std::string("usage") || ncclFunctions.send == nullptr) return EXIT_FAILURE;
  std::printf("%d ranks in one process: all sums are right\n", devices);
}
