// The unique id on its way from rank 0, which has to make it on its own host, to the other ranks of a test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "tacc/tacc.h"

namespace tacc::test {

/// A pipe with room for all of them. To be made before the ranks are forked.
struct IdPipe {
  int ends[2];
  IdPipe() { EXPECT_EQ(pipe(ends), 0); }
  ~IdPipe() {
    close(ends[0]);
    close(ends[1]);
  }
  taccUniqueId pass(int ranks, int rank) const {
    taccUniqueId id{};
    if (rank != 0) {
      EXPECT_EQ(read(ends[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
      return id;
    }
    EXPECT_EQ(taccGetUniqueId(&id), taccSuccess) << taccGetLastError(nullptr);
    for (int other = 1; other < ranks; ++other)
      EXPECT_EQ(write(ends[1], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    return id;
  }
};

}  // namespace tacc::test
