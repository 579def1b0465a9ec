#include "topology/hwloc_node.hpp"

#include <hwloc.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "topology/host_clues.hpp"
#include "topology/host_list.hpp"
#include "topology/isolated.hpp"

namespace tacc {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

Handle init() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) failErrno("hwloc cannot be initialised");
  Handle handle(topology);
  // Devices are of no use here, and looking for them takes most of the time.
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  return handle;
}

/// A possible level: which of its groups each core is in.
struct Candidate {
  InnerLevel level;
  std::vector<std::uint64_t> groupOf;

  std::size_t groups() const {
    std::vector<std::uint64_t> all = groupOf;
    std::sort(all.begin(), all.end());
    return static_cast<std::size_t>(std::unique(all.begin(), all.end()) - all.begin());
  }
  std::vector<std::uint32_t> starts() const {
    std::vector<std::uint32_t> result;
    for (std::uint32_t core = 0; core < groupOf.size(); ++core) {
      if (core == 0 || groupOf[core] != groupOf[core - 1]) result.push_back(core);
    }
    return result;
  }
};

/// Groups of cores below the same object; a core without one is a group of its own.
template <class Find>
Candidate candidate(const std::vector<hwloc_obj_t>& cores, LevelKind kind, Find find) {
  Candidate result{{kind}, {}};
  for (std::size_t core = 0; core < cores.size(); ++core) {
    const hwloc_obj_t above = find(cores[core]);
    constexpr std::uint64_t alone = std::uint64_t{1} << 63;
    result.groupOf.push_back(above != nullptr ? above->gp_index & ~alone : alone | core);
    if (above == nullptr || result.level.bytes > 0) continue;
    if (kind == LevelKind::cache && above->attr != nullptr)
      result.level.bytes = static_cast<double>(above->attr->cache.size);
  }
  return result;
}

hwloc_obj_t numaOf(hwloc_topology_t topology, hwloc_obj_t core) {
  if (core->nodeset == nullptr) return nullptr;
  const int first = hwloc_bitmap_first(core->nodeset);
  return first < 0 ? nullptr : hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(first));
}

hwloc_obj_type_t sharedCache(hwloc_topology_t topology, std::size_t cores) {
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
    const int count = hwloc_get_nbobjs_by_type(topology, type);
    if (count > 0 && static_cast<std::size_t>(count) < cores) return type;
  }
  return HWLOC_OBJ_L3CACHE;
}

std::vector<hwloc_obj_t> coresOf(hwloc_topology_t topology) {
  std::vector<hwloc_obj_t> cores;
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_CORE, HWLOC_OBJ_PU}) {  // some virtual machines tell of no cores
    for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology, type, core)) != nullptr;) {
      if (cores.size() < mostCores && core->cpuset != nullptr) cores.push_back(core);
    }
    if (!cores.empty()) break;
  }
  return cores;
}

NodeDescription describe(hwloc_topology_t topology, const std::string& where) {
  const std::vector<hwloc_obj_t> cores = coresOf(topology);
  NodeDescription node;
  for (const hwloc_obj_t core : cores) {
    std::vector<std::uint32_t>& threads = node.cores.emplace_back();
    for (int cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0 && threads.size() < 64;
         cpu = hwloc_bitmap_next(core->cpuset, cpu)) {
      threads.push_back(static_cast<std::uint32_t>(cpu));
    }
    if (threads.empty()) fail(taccInvalidArgument, "{}: hwloc finds a core without hardware threads", where);
  }
  if (cores.empty()) fail(taccInvalidArgument, "{}: hwloc finds no cores", where);

  const hwloc_obj_type_t cache = sharedCache(topology, cores.size());
  std::vector<Candidate> levels;
  levels.push_back(candidate(cores, LevelKind::cache,
                             [&](hwloc_obj_t core) { return hwloc_get_ancestor_obj_by_type(topology, cache, core); }));
  levels.push_back(candidate(cores, LevelKind::numa, [&](hwloc_obj_t core) { return numaOf(topology, core); }));
  levels.push_back(candidate(cores, LevelKind::socket, [&](hwloc_obj_t core) {
    return hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, core);
  }));
  // Which contains which differs from machine to machine: the more groups, the further inside.
  std::stable_sort(levels.begin(), levels.end(),
                   [](const Candidate& a, const Candidate& b) { return a.groups() > b.groups(); });
  node.nesting = Nesting(static_cast<std::uint32_t>(cores.size()));
  for (const Candidate& level : levels) {
    if (level.level.kind == LevelKind::cache && level.groups() == cores.size()) continue;  // shared by nobody
    if (node.nesting.add(level.starts())) node.levels.push_back(level.level);
  }
  return node;
}

NodeDescription readXml(std::string_view xml, const std::string& where) {
  const Handle topology = init();
  const std::string text(xml);  // ended by a zero, which counts as a part of the buffer
  if (text.size() >= static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      hwloc_topology_set_xmlbuffer(topology.get(), text.c_str(), static_cast<int>(text.size()) + 1) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    fail(taccInvalidArgument, "{}: hwloc cannot read this XML; right is what lstopo FILE.xml writes", where);
  }
  return describe(topology.get(), where);
}

}  // namespace

bool hasHwloc() noexcept { return true; }

NodeDescription nodeHere() {
  const Handle topology = init();
  if (hwloc_topology_load(topology.get()) != 0) failErrno("hwloc cannot look at this host");
  return describe(topology.get(), "this host");
}

NodeDescription nodeFromXml(std::string_view xml, const std::string& where) {
  // hwloc trusts the structure of its files: damaged ones make it read memory that is not there.
  HostClues clues;
  const std::string text = runIsolated(
      [&] {
        clues.host = "-";
        clues.node = readXml(xml, where);
        return cluesToText(clues);
      },
      where);
  return cluesFromText(text).node.value();
}

NodeDescription nodeFromSynthetic(const std::string& description, const std::string& where) {
  const Handle topology = init();
  // hwloc makes all objects before anybody can count them.
  std::uint64_t objects = 1, number = 0;
  for (const char c : description + ' ') {
    if (c >= '0' && c <= '9') {
      number = std::min<std::uint64_t>(number * 10 + static_cast<std::uint64_t>(c - '0'), mostCores);
    } else if (c == ' ' || c == '(') {
      objects =
          std::min<std::uint64_t>(objects * std::max<std::uint64_t>(number, 1), std::uint64_t{mostCores} * mostCores);
      number = 0;
    } else {
      number = 0;
    }
  }
  if (objects > mostCores || hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    fail(taccInvalidArgument,
         "{}: hwloc cannot make a host of up to {} threads from \"{}\"; right is, for instance, "
         "\"pack:2 numa:1 l3:4 core:8 pu:2\"",
         where, mostCores, shownText(description));
  }
  return describe(topology.get(), where);
}

}  // namespace tacc
