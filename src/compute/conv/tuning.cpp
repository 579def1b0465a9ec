#include "compute/conv/tuning.hpp"

#include <fmt/format.h>

#include <mutex>

namespace tacc::conv {
namespace {

std::string keyOf(const Description& d) {
  return fmt::format("{} {} {} {} {} {} {}", static_cast<int>(d.pass), d.shape.text(), static_cast<int>(d.inputLayout),
                     static_cast<int>(d.outputLayout), d.isBfloat16, d.winograd, d.maxWorkers);
}

struct Current {
  std::mutex mutex;
  std::shared_ptr<const ConvTuning> tuning;
};

Current& current() {
  static Current instance;
  return instance;
}

}  // namespace

bool ConvTuning::add(const Description& description, std::string algorithm) {
  return choices_.emplace(keyOf(description), std::move(algorithm)).second;
}

std::string_view ConvTuning::find(const Description& description) const {
  const auto found = choices_.find(keyOf(description));
  return found == choices_.end() ? std::string_view() : found->second;
}

void setTuning(std::shared_ptr<const ConvTuning> tuning) {
  const std::lock_guard lock(current().mutex);
  current().tuning = std::move(tuning);
}

std::shared_ptr<const ConvTuning> currentTuning() {
  const std::lock_guard lock(current().mutex);
  return current().tuning;
}

}  // namespace tacc::conv
