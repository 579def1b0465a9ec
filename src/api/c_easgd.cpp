// The C functions of tacc/easgd.h.
#include <algorithm>
#include <span>

#include "api/boundary.hpp"
#include "api/check.hpp"
#include "api/easgd_handle.hpp"
#include "api/group.hpp"
#include "easgd/fused_update.hpp"
#include "easgd/modes.hpp"

using tacc::Entry;
using tacc::guard;
using tacc::guardLong;
using tacc::guardOfAll;

namespace {

/// Whose error it is, where the handle is one.
taccComm_t commOf(taccEasgd_t easgd) noexcept {
  try {
    return &tacc::requireEasgd(easgd)->comm();
  } catch (...) {
    return nullptr;
  }
}

/// The body of a function of all ranks that uses a session while nothing else uses its communicator.
template <class Body>
taccResult_t guardSession(const char* function, taccEasgd_t easgd, Body&& body) noexcept {
  return guardOfAll(function, commOf(easgd), [&] {
    const auto found = tacc::requireEasgd(easgd);
    const Entry entry(&found->comm());
    tacc::checkNoGroup();
    body(*found);
  });
}

/// Of a model without weights: there, and never read.
constexpr float noGradient[1] = {};

/// Numbers that a function reads or writes.
void checkNumbers(taccComm& comm, const char* name, const float* numbers, std::size_t count) {
  auto* const both = const_cast<float*>(numbers);
  tacc::Call call{tacc::Collective::allReduce, both, both, count, taccFloat32};
  tacc::checkCall(comm, call, {.send = name, .receive = name, .count = "count"});
  tacc::checkFloats(numbers, name);
}

/// Numbers that lie apart from the weights.
void checkApart(taccComm& comm, const char* name, const float* numbers, float* weights, std::size_t count) {
  checkNumbers(comm, name, numbers, count);
  if (numbers == weights && count > 0) tacc::fail(taccInvalidArgument, "{} and weights are the same memory", name);
  tacc::Call call{tacc::Collective::allReduce, numbers, weights, count, taccFloat32};
  tacc::checkCall(comm, call, {.send = name, .receive = "weights", .count = "count"});
}

}  // namespace

const char* taccEasgdModeName(taccEasgdMode_t mode) {
  if (mode < 0 || mode >= taccEasgdNumModes) return nullptr;
  return tacc::easgdMode(mode).name.data();
}

taccResult_t taccEasgdCreate(taccEasgd_t* easgd, float* weights, size_t count, taccComm_t comm,
                             const taccEasgdConfig_t* config) {
  return guardOfAll("taccEasgdCreate", comm, [&] {
    tacc::checkPointer(easgd, "easgd");
    const Entry entry(comm);
    tacc::checkNoGroup();
    const tacc::EasgdSettings settings = tacc::checkEasgdConfig(config);
    checkNumbers(*comm, "weights", weights, count);
    comm->waitForStreams();
    *easgd = tacc::keepEasgd(std::make_shared<taccEasgd>(*comm, settings, weights, count));
  });
}

taccResult_t taccEasgdCreateTensors(taccEasgd_t* easgd, const size_t* counts, int tensors, taccComm_t comm,
                                    const taccEasgdConfig_t* config) {
  return guardOfAll("taccEasgdCreateTensors", comm, [&] {
    tacc::checkPointer(easgd, "easgd");
    tacc::checkPointer(counts, "counts");
    if (tensors < 1) tacc::fail(taccInvalidArgument, "tensors is {}; a model has at least 1", tensors);
    const Entry entry(comm);
    tacc::checkNoGroup();
    const tacc::EasgdSettings settings = tacc::checkEasgdConfig(config);
    auto packed = std::make_unique<tacc::PackedTensors>(std::span(counts, static_cast<std::size_t>(tensors)));
    comm->waitForStreams();
    *easgd = tacc::keepEasgd(std::make_shared<taccEasgd>(*comm, settings, std::move(packed)));
  });
}

taccResult_t taccEasgdCreateAtCenter(taccEasgd_t* easgd, float* weights, size_t count, const taccUniqueId* center,
                                     const taccEasgdConfig_t* config) {
  return taccEasgdCreateAtCenters(easgd, weights, count, center, 1, config);
}

taccResult_t taccEasgdCreateAtCenters(taccEasgd_t* easgd, float* weights, size_t count, const taccUniqueId* centers,
                                      int slices, const taccEasgdConfig_t* config) {
  return guardLong("taccEasgdCreateAtCenters", nullptr, [&] {
    tacc::checkPointer(easgd, "easgd");
    tacc::checkPointer(centers, "centers");
    if (slices < 1 || static_cast<std::size_t>(slices) > std::max<std::size_t>(count, 1))
      tacc::fail(taccInvalidArgument, "slices is {}; a center of {} numbers has at least 1 and not more than numbers",
                 slices, count);
    tacc::EasgdSettings settings = tacc::checkEasgdConfig(config);
    if (tacc::easgdMode(settings.mode).isSynchronous)
      tacc::fail(taccInvalidArgument, "mode {} needs all ranks of a communicator; async and hogwild come to a center",
                 tacc::easgdMode(settings.mode).name);
    settings.centers.assign(centers, centers + slices);
    auto lone = std::make_unique<tacc::LoneCommunicator>();
    checkNumbers(lone->comm(), "weights", weights, count);
    *easgd = tacc::keepEasgd(std::make_shared<taccEasgd>(std::move(lone), settings, weights, count));
  });
}

taccResult_t taccEasgdGetCenterId(taccEasgd_t easgd, taccUniqueId* center) {
  return guard("taccEasgdGetCenterId", commOf(easgd), [&] {
    tacc::checkPointer(center, "center");
    const auto found = tacc::requireEasgd(easgd);
    const std::span<const taccUniqueId> ids = found->session().centerIds();
    if (ids.size() > 1)
      tacc::fail(taccInvalidUsage, "{} hosts keep a slice of the center each: taccEasgdGetCenterIds tells all ids",
                 ids.size());
    *center = ids.front();
  });
}

taccResult_t taccEasgdGetCenterIds(taccEasgd_t easgd, taccUniqueId* centers, int* slices) {
  return guard("taccEasgdGetCenterIds", commOf(easgd), [&] {
    tacc::checkPointer(slices, "slices");
    const auto found = tacc::requireEasgd(easgd);
    const std::span<const taccUniqueId> ids = found->session().centerIds();
    const int room = *slices;
    *slices = static_cast<int>(ids.size());
    if (centers == nullptr) return;
    if (room < *slices)
      tacc::fail(taccInvalidArgument, "*slices is {}: room for that number of ids, and there are {}", room, *slices);
    std::ranges::copy(ids, centers);
  });
}

taccResult_t taccEasgdGetTensor(taccEasgd_t easgd, int index, float** weights, float** gradients) {
  return guard("taccEasgdGetTensor", commOf(easgd), [&] {
    const auto found = tacc::requireEasgd(easgd);
    const tacc::PackedTensors* const tensors = found->tensors();
    if (tensors == nullptr)
      tacc::fail(taccInvalidUsage, "its weights are the program's own; taccEasgdCreateTensors makes tensors");
    if (index < 0 || static_cast<std::size_t>(index) >= tensors->tensors())
      tacc::fail(taccInvalidArgument, "index is {}; tensors are 0 to {}", index, tensors->tensors() - 1);
    const std::size_t offset = tensors->offset(static_cast<std::size_t>(index));
    if (weights != nullptr) *weights = tensors->weights() + offset;
    if (gradients != nullptr) *gradients = tensors->gradients() + offset;
  });
}

taccResult_t taccEasgdStart(taccEasgd_t easgd) {
  return guardSession("taccEasgdStart", easgd, [](taccEasgd& found) {
    found.comm().waitForStreams();
    found.session().start();
  });
}

taccResult_t taccEasgdStep(taccEasgd_t easgd, const float* gradients) {
  return guardSession("taccEasgdStep", easgd, [&](taccEasgd& found) {
    if (gradients == nullptr) {
      if (found.session().count() == 0) return found.session().step(noGradient);
      if (found.tensors() == nullptr)
        tacc::fail(taccInvalidArgument, "gradients is NULL, and the weights are not of taccEasgdCreateTensors");
      gradients = found.tensors()->gradients();
    } else {
      checkApart(found.comm(), "gradients", gradients, found.weights(), found.session().count());
    }
    found.session().step(gradients);
  });
}

taccResult_t taccEasgdExchange(taccEasgd_t easgd) {
  return guardSession("taccEasgdExchange", easgd, [](taccEasgd& found) { found.session().exchange(); });
}

taccResult_t taccEasgdCenter(taccEasgd_t easgd, float* center) {
  return guardSession("taccEasgdCenter", easgd, [&](taccEasgd& found) {
    checkApart(found.comm(), "center", center, found.weights(), found.session().count());
    found.session().readCenter(center);
  });
}

taccResult_t taccEasgdSetLearningRate(taccEasgd_t easgd, float learningRate) {
  return guard("taccEasgdSetLearningRate", commOf(easgd), [&] {
    const auto found = tacc::requireEasgd(easgd);
    taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
    config.learningRate = learningRate;
    tacc::checkEasgdConfig(&config);
    found->session().setRate(learningRate);
  });
}

taccResult_t taccEasgdInfo(taccEasgd_t easgd, taccEasgdInfo_t* info) {
  return guard("taccEasgdInfo", commOf(easgd), [&] {
    tacc::checkPointer(info, "info");
    if (info->size < sizeof(taccEasgdInfo_t))
      tacc::fail(taccInvalidArgument, "info->size is {}; set it to sizeof(taccEasgdInfo_t), {}", info->size,
                 sizeof(taccEasgdInfo_t));
    const std::size_t size = info->size;
    *info = tacc::requireEasgd(easgd)->session().info();
    info->size = size;
  });
}

taccResult_t taccEasgdSave(taccEasgd_t easgd, const char* path) {
  return guardSession("taccEasgdSave", easgd, [&](taccEasgd& found) {
    tacc::checkPointer(path, "path");
    found.session().save(path);
  });
}

taccResult_t taccEasgdLoad(taccEasgd_t easgd, const char* path) {
  return guardSession("taccEasgdLoad", easgd, [&](taccEasgd& found) {
    tacc::checkPointer(path, "path");
    found.comm().waitForStreams();
    found.session().load(path);
  });
}

taccResult_t taccEasgdDestroy(taccEasgd_t easgd) {
  if (easgd == nullptr) return taccSuccess;
  return guardOfAll("taccEasgdDestroy", commOf(easgd), [&] {
    const auto removed = tacc::removeEasgd(easgd);
    taccComm& comm = removed->comm();
    if (!tacc::has(comm.life.load(), tacc::Needs::active)) return;
    const Entry entry(&comm);
    comm.waitForStreams();
    if (comm.communicator->asyncError() == taccSuccess) removed->session().end();
  });
}

taccResult_t taccAllReduceUpdate(const float* gradients, float* weights, float* velocity, size_t count,
                                 float learningRate, float momentum, taccComm_t comm) {
  return guardOfAll("taccAllReduceUpdate", comm, [&] {
    const Entry entry(comm);
    tacc::checkNoGroup();
    checkNumbers(*comm, "weights", weights, count);
    checkApart(*comm, "gradients", gradients, weights, count);
    if (velocity != nullptr) {
      checkApart(*comm, "velocity", velocity, weights, count);
      checkApart(*comm, "gradients", gradients, velocity, count);
    }
    taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
    config.learningRate = learningRate;
    config.momentum = momentum;
    tacc::checkEasgdConfig(&config);
    if (velocity == nullptr && momentum != 0)
      tacc::fail(taccInvalidArgument, "velocity is NULL, and momentum is {}; without one it must be 0", momentum);
    comm->waitForStreams();
    tacc::allReduceUpdate(*comm->communicator, {weights, velocity, gradients, learningRate, momentum}, count);
  });
}
