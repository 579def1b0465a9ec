// How a call copies its data. What is fastest differs between machines, and on virtual machines from hour to hour (two
// cores that share a cache, or not): so it is measured, on the calls that are made anyway. It never changes a result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "algorithms/plan.hpp"

namespace tacc {

struct CopyPolicy {
  bool throughKernel = false;       // private memory: the receiver reads it with process_vm_readv; else it is staged
  bool throughPipes = false;        // the same: its owner gives the pages to pipes instead (page_pipes.hpp)
  bool nonTemporalSlots = false;    // stores of what other ranks read next: faster where caches are far apart
  bool nonTemporalResults = false;  // stores of results: faster where they are larger than the cache
  friend bool operator==(const CopyPolicy&, const CopyPolicy&) = default;
};

/// Which policies a call may choose between.
enum class CopyPolicyKind : std::uint8_t {
  eager,        // slots or not
  mapped,       // no copy: results or not
  staged,       // slots, results
  either,       // slots, results; or through the kernel
  cma,          // results
  eitherPiped,  // as `either`, or through pipes
  cmaPiped,     // as `cma`, or through pipes
  piped,        // through pipes
};

/// Calls of a similar kind and size learn together. Ranks that must choose alike record alike: then all have the same
/// state.
class CopyPolicyTuner {
 public:
  /// Oversubscribed: ranks take turns on cores. Then a policy that is quick only where they happen to take them well is
  /// judged by the mean of its calls.
  explicit CopyPolicyTuner(bool oversubscribed = false) noexcept : oversubscribed_(oversubscribed) {}

  /// The policy for the next call.
  CopyPolicy choose(Collective collective, CopyPolicyKind kind, std::size_t bytes, bool inPlace = false);
  /// Whether the time of the call that choose() was last asked for is worth taking: always while policies are tried,
  /// now and then later.
  bool wantsTime() const noexcept { return pending_ != nullptr; }
  /// What choose() would return next where it is settled: it was not asked to try anything, and does not want the time
  /// of that call, nor of the last one.
  std::optional<CopyPolicy> settled(Collective collective, CopyPolicyKind kind, std::size_t bytes,
                                    bool inPlace = false) const noexcept;
  /// `seconds`: how long that call took. Ignored if it was not wanted.
  void record(double seconds) noexcept;

 private:
  static constexpr std::size_t most = 8;  // policies of a kind
  struct Class {
    std::array<float, most> estimate{};           // seconds per byte; 0: not tried
    std::array<std::uint8_t, most> trialsLeft{};  // before its estimate is trusted
    std::uint32_t calls = 0;
    std::uint8_t current = 0;
    std::uint8_t nextRetrial = 0;
  };
  static std::span<const CopyPolicy> policiesOf(CopyPolicyKind kind) noexcept;
  /// What calls have in common that learn together.
  struct Likeness {
    Collective collective;
    CopyPolicyKind kind;
    bool inPlace;        // such calls copy less
    unsigned magnitude;  // bits of their bytes

    std::uint32_t key() const noexcept;
  };
  Class& classFor(const Likeness& likeness);
  struct Pick {
    std::size_t policy;
    bool isTimed;
  };
  static Pick pick(Class& c, std::size_t count) noexcept;
  [[gnu::noinline]] void estimateAnew(Class& c, double seconds) noexcept;

  bool oversubscribed_;
  std::unordered_map<std::uint32_t, Class> classes_;
  std::uint32_t lastKey_ = 0;  // of the last call: the next one is probably alike
  Class* last_ = nullptr;
  Class* pending_ = nullptr;  // whose time record() will be told
  std::size_t pendingPolicy_ = 0;
  std::size_t pendingBytes_ = 1;
};

}  // namespace tacc
