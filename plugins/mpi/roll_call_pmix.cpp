#include "roll_call_pmix.hpp"

#if defined(TACC_HAS_PMIX)

#include <dlfcn.h>
#include <pmix.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace tacc::mpi {
namespace {

constexpr const char* key = "tacc-preload";
constexpr int patience = 5;  // seconds for an answer of the server of this host

/// libpmix, the one that Open MPI uses, and this process as its client until it exits: MPI_Init makes it one again, and
/// PMIx counts.
struct Client {
  decltype(&::PMIx_Init) init = nullptr;
  decltype(&::PMIx_Finalize) finalize = nullptr;
  decltype(&::PMIx_Put) put = nullptr;
  decltype(&::PMIx_Commit) commit = nullptr;
  decltype(&::PMIx_Get) get = nullptr;
  pmix_proc_t self{};

  bool load() noexcept {
    void* const handle = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) return false;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      return function != nullptr;
    };
    return find(init, "PMIx_Init") && find(finalize, "PMIx_Finalize") && find(put, "PMIx_Put") &&
           find(commit, "PMIx_Commit") && find(get, "PMIx_Get");
  }
};

Client& client() noexcept {
  static Client only;
  return only;
}

}  // namespace

bool answerByPmix() noexcept {
  Client& pmix = client();
  if (!pmix.load() || pmix.init(&pmix.self, nullptr, 0) != PMIX_SUCCESS) return false;
  // mpirun takes a process for failed that ends without it.
  std::atexit([] { (void)client().finalize(nullptr, 0); });
  pmix_value_t value{};
  value.type = PMIX_BOOL;
  value.data.flag = true;
  return pmix.put(PMIX_GLOBAL, key, &value) == PMIX_SUCCESS && pmix.commit() == PMIX_SUCCESS;
}

std::optional<bool> hasAnsweredByPmix(int rank) noexcept {
  const Client& pmix = client();
  pmix_proc_t asked = pmix.self;
  asked.rank = static_cast<pmix_rank_t>(rank);
  // At once, as MPI_Init has handed round what there is: a server waits for its own ranks otherwise.
  std::array<pmix_info_t, 2> wishes{};
  std::strncpy(wishes[0].key, PMIX_IMMEDIATE, sizeof wishes[0].key - 1);
  wishes[0].value.type = PMIX_BOOL;
  wishes[0].value.data.flag = true;
  std::strncpy(wishes[1].key, PMIX_TIMEOUT, sizeof wishes[1].key - 1);
  wishes[1].value.type = PMIX_INT;
  wishes[1].value.data.integer = patience;
  pmix_value_t* value = nullptr;
  const pmix_status_t status = pmix.get(&asked, key, wishes.data(), wishes.size(), &value);
  std::free(value);
  if (status == PMIX_SUCCESS) return true;
  if (status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT) return false;
  return std::nullopt;
}

}  // namespace tacc::mpi

#else

namespace tacc::mpi {

bool answerByPmix() noexcept { return false; }
std::optional<bool> hasAnsweredByPmix(int) noexcept { return std::nullopt; }

}  // namespace tacc::mpi

#endif
