// Who meets whom in some of the algorithms, without their plans: for pricing them on more ranks than a plan is made
// for.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/butterfly.hpp"
#include "algorithms/plan.hpp"
#include "algorithms/tree.hpp"

namespace tacc {

Tree knomialTree(int radix, int p, int root);
Tree bineTree(int p, int root);
/// Of hierarchical: binomial trees within binomial trees over the request's groups.
Tree nestedTree(const PlanRequest& request);
/// Tree `which`, 0 or 1, of the two over n places; ranks are places.
Tree doubleTree(int which, int n);
/// The groups over which ring_2d runs its rings; empty if it does not serve the request.
std::vector<std::vector<int>> rowsOf(const PlanRequest& request);
/// The partners of a butterfly of that name, or nullptr.
Butterfly::Partner butterflyPartner(std::string_view algorithm);

}  // namespace tacc
