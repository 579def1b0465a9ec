/* Communicators that end with their objects. Part of tacc/tacc.hpp. */
#ifndef TACC_CXX_COMMUNICATOR_HPP
#define TACC_CXX_COMMUNICATOR_HPP

#include <span>
#include <utility>
#include <vector>

#include "tacc/cxx/collectives.hpp"
#include "tacc/cxx/error.hpp"
#include "tacc/cxx/group.hpp"

namespace taccxx {

/// Options of a communicator: a taccConfig_t that begins with the defaults.
struct Config : taccConfig_t {
  /// The defaults.
  Config() noexcept : taccConfig_t TACC_CONFIG_INITIALIZER {}
};

/// A new id (taccGetUniqueId).
inline taccUniqueId getUniqueId() {
  taccUniqueId id;
  check(taccGetUniqueId(&id));
  return id;
}

/// What ranks agreed on: the bitwise and of their flags, and whether all ranks of the communicator took part.
struct Agreement {
  /// The bitwise and.
  int flags;
  /// All ranks of the communicator took part.
  bool isOfAll;
};

/// One rank's end of a communicator, which it owns. Empty when it was made so, was moved from, or by a split with
/// TACC_SPLIT_NOCOLOR. It cannot be made in a group: that would be made at the group's end only.
class Communicator : public CommunicatorView {
 public:
  /// Empty.
  Communicator() = default;
  /// Owns `comm` from now on.
  explicit Communicator(taccComm_t comm) noexcept : CommunicatorView(comm) {}
  /// Takes what `other` has.
  Communicator(Communicator&& other) noexcept : CommunicatorView(other.release()) {}
  /// Exchanges what both have.
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  /// As taccCommDestroy, whose errors destroy() tells; one that still joins is aborted.
  ~Communicator() {
    if (comm_ == nullptr) return;
    taccResult_t state = taccSuccess;
    if (taccCommGetAsyncError(comm_, &state) == taccSuccess && state == taccInProgress) {
      static_cast<void>(taccCommAbort(comm_));
    } else {
      static_cast<void>(taccCommDestroy(comm_));
    }
  }

  /// With `config.blocking` 0 it may still be joining: ask asyncError().
  static Communicator initRank(int ranks, const taccUniqueId& id, int rank, const taccConfig_t& config = Config()) {
    taccComm_t comm = nullptr;
    return joined(taccCommInitRankConfig(&comm, ranks, id, rank, &config), comm);
  }
  /// Of the processes that a launcher started (taccCommInitEnv).
  static Communicator initEnv(const taccConfig_t& config = Config()) {
    taccComm_t comm = nullptr;
    return joined(taccCommInitEnv(&comm, &config), comm);
  }
  /// All ranks in this process, for use by threads.
  static std::vector<Communicator> initAll(int ranks) {
    std::vector<taccComm_t> comms(ranks > 0 ? static_cast<std::size_t>(ranks) : 0);
    check(taccCommInitAll(comms.data(), ranks, nullptr));
    return std::vector<Communicator>(comms.begin(), comms.end());
  }

  /// `config` null: that of this communicator.
  Communicator split(int color, int key, const taccConfig_t* config = nullptr) const {
    thread_local taccComm_t none;  // outlives a group that is open here, whose end writes it
    if (color == TACC_SPLIT_NOCOLOR) {
      check(taccCommSplit(comm_, color, key, &none, config));
      return Communicator();
    }
    taccComm_t part = nullptr;
    return made(taccCommSplit(comm_, color, key, &part, config), part);
  }
  /// Of `ranks`, who alone call it (taccCommCreateGroup).
  Communicator createGroup(std::span<const int> ranks, const taccConfig_t* config = nullptr) const {
    taccComm_t group = nullptr;
    return made(taccCommCreateGroup(comm_, ranks.data(), static_cast<int>(ranks.size()), &group, config), group);
  }
  /// Of the ranks that are left.
  Communicator shrink(std::span<const int> excluded = {}, const taccConfig_t* config = nullptr) const {
    taccComm_t rest = nullptr;
    return made(taccCommShrink(comm_, excluded.data(), static_cast<int>(excluded.size()), &rest, config, 0), rest);
  }
  /// Among the ranks that live (taccCommAgree).
  Agreement agree(int flags) const {
    const taccResult_t result = taccCommAgree(comm_, &flags);
    if (result != taccRemoteError) check(result);
    return {flags, result == taccSuccess};
  }
  /// Ends every call on all ranks (taccCommRevoke).
  void revoke() const { check(taccCommRevoke(comm_)); }
  /// Waits for all work given to streams (taccCommFinalize).
  void finalize() const { check(taccCommFinalize(comm_)); }

  /// Ends it now, and throws what went wrong; then it is not ended yet.
  void destroy() {
    check(taccCommDestroy(comm_));
    comm_ = nullptr;
  }
  /// Ends it on all ranks without waiting. From any thread, once.
  void abort() { check(taccCommAbort(release())); }
  /// Hands it to the caller.
  taccComm_t release() noexcept { return std::exchange(comm_, nullptr); }

 private:
  static Communicator made(taccResult_t result, const taccComm_t& comm) {
    check(result);
    if (comm != nullptr) return Communicator(comm);
    detail::spoilGroup();  // whose end would write to `comm`
    throw Error(
        taccInvalidUsage,
        "taccxx::Communicator: a communicator cannot be made so in a group, as it comes to be at the group's end "
        "only; use the C function there, with a handle that lives until then");
  }
  static Communicator joined(taccResult_t result, const taccComm_t& comm) {
    return made(result == taccInProgress && comm != nullptr ? taccSuccess : result, comm);
  }
};

}  // namespace taccxx

#endif
