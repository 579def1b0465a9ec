// Visits the elements [0, count) of a job with vectors only: no scalar rest, and no access outside the buffers.
//
// What does not fill whole vectors is covered by vectors that overlap their neighbours. These are computed before
// anything is written and written last: so a destination may be a source, and an element that is visited twice gets the
// same value twice.
#include <hwy/highway.h>

#include <cstddef>

#if defined(TACC_COMPUTE_TRAVERSE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TACC_COMPUTE_TRAVERSE_INL
#undef TACC_COMPUTE_TRAVERSE_INL
#else
#define TACC_COMPUTE_TRAVERSE_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// count < 2 * kLanes: two overlapping vectors of the widest size that fits.
template <class Memory, std::size_t kLanes, class Step>
HWY_INLINE void traverseShort(const Step& step, std::size_t count) {
  if constexpr (kLanes > 0) {
    if (count < kLanes) {
      traverseShort<Memory, kLanes / 2>(step, count);
      return;
    }
    const hn::FixedTag<Memory, kLanes> d;
    const auto first = step.compute(d, 0);
    const auto last = step.compute(d, count - kLanes);
    step.write(d, 0, first);
    step.write(d, count - kLanes, last);
  }
}

/// `Step` has
///   compute(d, i)            the values of the elements from i on, as many as the tag d has lanes
///   write(d, i, values)      stores them
///   run(begin, end)          both for [begin, end), a multiple of Tag's lanes
///   headLength(count)        elements, fewer than Tag's lanes, after which run should begin to be aligned
template <class Tag, class Step>
HWY_INLINE void traverse(const Step& step, std::size_t count) {
  const Tag d;
  constexpr std::size_t lanes = hn::MaxLanes(Tag());
  if (count < lanes) {
    traverseShort<hn::TFromD<Tag>, lanes / 2>(step, count);
    return;
  }
  const std::size_t head = step.headLength(count);
  const std::size_t end = count - (count - head) % lanes;
  if (head == 0 && end == count) {
    step.run(0, count);
    return;
  }
  const auto first = step.compute(d, 0);
  const auto last = step.compute(d, count - lanes);
  step.run(head, end);
  if (head != 0) step.write(d, 0, first);
  if (end != count) step.write(d, count - lanes, last);
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#endif
