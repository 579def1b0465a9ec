// Memory that forked ranks share with each other and the test.
#pragma once

#include <sys/mman.h>

#include <new>

namespace tacc::test {

/// All its bytes are 0 at first.
template <class T>
class SharedByRanks {
 public:
  SharedByRanks()
      : data_(static_cast<T*>(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~SharedByRanks() { ::munmap(data_, sizeof(T)); }
  SharedByRanks(const SharedByRanks&) = delete;
  SharedByRanks& operator=(const SharedByRanks&) = delete;
  T& operator*() const { return *data_; }

 private:
  T* data_;
};

}  // namespace tacc::test
