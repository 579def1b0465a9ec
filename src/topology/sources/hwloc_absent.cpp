#include "core/error.hpp"
#include "topology/sources/hwloc_node.hpp"

namespace tacc {
namespace {

[[noreturn]] void failAbsent(std::string_view where) {
  fail(taccInvalidUsage, "{}: this build has no hwloc; install libhwloc-dev and build again", where);
}

}  // namespace

bool hasHwloc() noexcept { return false; }
NodeDescription nodeHere() { failAbsent("this host"); }
NodeDescription wholeNodeHere() { failAbsent("this host"); }
NodeDescription nodeFromXml(std::string_view, const std::string& where) { failAbsent(where); }
NodeDescription nodeFromSynthetic(const std::string&, const std::string& where) { failAbsent(where); }

}  // namespace tacc
