#include "comm/launch/launch_store.hpp"

#include "core/error.hpp"

namespace tacc {

std::string shareThroughStore(const Launch& launch, const std::string& own, StoreDeadline deadline) {
  switch (launch.store) {
    case Store::pmi:
      return shareByPmi(launch, own, deadline);
    case Store::pmix:
      return shareByPmix(launch, own, deadline);
    case Store::none:
      break;
  }
  fail(taccInternalError, "{} has no store", launch.launcher);
}

}  // namespace tacc
