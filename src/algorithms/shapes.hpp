// Trees that more than one algorithm is made of, and the tests look at.
#pragma once

#include "algorithms/tree.hpp"

namespace tacc {

Tree knomialTree(int radix, int p, int root);
/// Tree `which`, 0 or 1, of the two over n places; ranks are places.
Tree doubleTree(int which, int n);

}  // namespace tacc
