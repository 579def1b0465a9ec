// First in, mostly first out: what waits for its partner, where both come in about the same order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tacc {

/// Elements in the order in which they were added. Memory is kept, so nothing is allocated once it has grown. `T` is
/// copied as it moves.
template <class T>
class LooseQueue {
 public:
  using Iterator = typename std::vector<T>::iterator;

  bool empty() const noexcept { return first_ == elements_.size(); }
  Iterator begin() noexcept { return elements_.begin() + static_cast<std::ptrdiff_t>(first_); }
  Iterator end() noexcept { return elements_.end(); }
  typename std::vector<T>::const_iterator begin() const noexcept {
    return elements_.begin() + static_cast<std::ptrdiff_t>(first_);
  }
  typename std::vector<T>::const_iterator end() const noexcept { return elements_.end(); }

  /// Cost: constant, on average.
  void push(const T& element) {
    // A full vector gives up what was removed, where that is half of it, before it grows.
    if (elements_.size() == elements_.capacity() && first_ > elements_.size() / 2) {
      elements_.erase(elements_.begin(), begin());
      first_ = 0;
    }
    elements_.push_back(element);
  }
  /// Removes the element at `position`; the others keep their order, iterators end. Cost: the elements before it.
  void erase(Iterator position) noexcept {
    std::move_backward(begin(), position, position + 1);
    if (++first_ == elements_.size()) clear();
  }
  template <class Predicate>
  void eraseIf(const Predicate& predicate) {
    elements_.erase(std::remove_if(begin(), end(), predicate), end());
    if (empty()) clear();
  }
  void clear() noexcept {
    elements_.clear();
    first_ = 0;
  }

 private:
  std::vector<T> elements_;
  std::size_t first_ = 0;  // those before it have been removed
};

}  // namespace tacc
