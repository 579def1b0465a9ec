#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "comm/launch/launch_store.hpp"
#include "core/error.hpp"

#if defined(TACC_HAS_PMIX)
#include <pmix.h>
#endif

namespace tacc {

#if defined(TACC_HAS_PMIX)

namespace {

constexpr const char* libraryName = "libpmix.so.2";
constexpr const char* meetingKey = "tacc-meeting";

/// The functions of libpmix. It is loaded where it is needed, as most jobs need none, and never unloaded: Open MPI may
/// use the same one.
struct Library {
  using Finalize = decltype(&::PMIx_Finalize);

  decltype(&::PMIx_Init) init;
  Finalize finalize;
  decltype(&::PMIx_Put) put;
  decltype(&::PMIx_Commit) commit;
  decltype(&::PMIx_Fence) fence;
  decltype(&::PMIx_Get) get;
  decltype(&::PMIx_Error_string) errorString;

  explicit Library(const Launch& launch) {
    void* const handle = ::dlopen(libraryName, RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr)
      fail(
          taccSystemError,
          "rank {}: {} keeps where ranks meet in PMIx, and {} cannot be loaded ({}); install it (on Debian: libpmix2), "
          "or set TACC_RENDEZVOUS=HOST:PORT to rank 0's host and a free port of it, the same on every rank",
          launch.rank, launch.launcher, libraryName, ::dlerror());
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      if (function == nullptr) fail(taccSystemError, "rank {}: {} has no {}", launch.rank, libraryName, name);
    };
    find(init, "PMIx_Init");
    find(finalize, "PMIx_Finalize");
    find(put, "PMIx_Put");
    find(commit, "PMIx_Commit");
    find(fence, "PMIx_Fence");
    find(get, "PMIx_Get");
    find(errorString, "PMIx_Error_string");
  }
};

/// This process as a client of the process manager's server, until it exits: who has left may not come again, and an
/// MPI may want to come after this. PMIx counts how often the process is a client.
class Client {
 public:
  explicit Client(const Launch& launch) : launch_(launch), library_(launch) {
    require(library_.init(&self_, nullptr, 0), "reach the server of the process manager");
    static const Library::Finalize leave = library_.finalize;
    // mpirun takes a process for failed that ends without it.
    std::atexit([] { (void)leave(nullptr, 0); });
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void put(const std::string& text) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    std::string copy = text;
    value.data.string = copy.data();
    require(library_.put(PMIX_GLOBAL, meetingKey, &value), "leave where rank 0 is met");
    require(library_.commit(), "leave where rank 0 is met");
  }

  /// All ranks: hands round what was put. Without it, who asks for it after an MPI has handed round its own gets
  /// nothing.
  void handRound(StoreDeadline deadline) {
    std::array<pmix_info_t, 2> wishes{};
    std::strncpy(wishes[0].key, PMIX_COLLECT_DATA, sizeof wishes[0].key - 1);
    wishes[0].value.type = PMIX_BOOL;
    wishes[0].value.data.flag = true;
    std::strncpy(wishes[1].key, PMIX_TIMEOUT, sizeof wishes[1].key - 1);
    wishes[1].value.type = PMIX_INT;
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(deadline - std::chrono::steady_clock::now());
    wishes[1].value.data.integer = std::max(1, static_cast<int>(left.count()));
    pmix_proc_t all = self_;
    all.rank = PMIX_RANK_WILDCARD;
    const pmix_status_t status = library_.fence(&all, 1, wishes.data(), wishes.size());
    if (status == PMIX_ERR_TIMEOUT)
      fail(taccTimeout,
           "rank {}: not all {} ranks of the job came to say where they meet in time (PMIx); all have to call "
           "taccCommInitEnv, or none may",
           launch_.rank, launch_.ranks);
    require(status, "hand round where rank 0 is met");
  }

  std::string get() {
    pmix_proc_t first = self_;
    first.rank = 0;
    pmix_value_t* value = nullptr;
    require(library_.get(&first, meetingKey, nullptr, 0, &value), "learn where rank 0 is met");
    std::string text = value != nullptr && value->type == PMIX_STRING ? value->data.string : "";
    if (value != nullptr) {
      if (value->type == PMIX_STRING) std::free(value->data.string);
      std::free(value);
    }
    return text;
  }

 private:
  void require(pmix_status_t status, std::string_view what) const {
    if (status == PMIX_SUCCESS) return;
    fail(taccSystemError,
         "rank {}: cannot {} by PMIx: {}; set TACC_RENDEZVOUS=HOST:PORT to rank 0's host and a free port of it, the "
         "same on every rank",
         launch_.rank, what, library_.errorString(status));
  }

  const Launch& launch_;
  Library library_;
  pmix_proc_t self_{};
};

}  // namespace

std::string shareByPmix(const Launch& launch, const std::string& own, StoreDeadline deadline) {
  Client client(launch);
  if (!own.empty()) client.put(own);
  client.handRound(deadline);
  return client.get();
}

#else

std::string shareByPmix(const Launch& launch, const std::string&, StoreDeadline) {
  fail(taccInvalidUsage,
       "rank {}: {} keeps where ranks meet in PMIx, which is not in this build (on Debian: libpmix-dev); set "
       "TACC_RENDEZVOUS=HOST:PORT to rank 0's host and a free port of it, the same on every rank",
       launch.rank, launch.launcher);
}

#endif

}  // namespace tacc
