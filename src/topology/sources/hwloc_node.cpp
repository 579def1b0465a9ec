#include "topology/sources/hwloc_node.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/host_clues.hpp"
#include "topology/sources/isolated.hpp"

namespace tacc {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, DestroyTopology>;

Handle make() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) failErrno("hwloc cannot be initialised");
  return Handle(topology);
}

Handle init() {
  // hwloc loads its plugins with the first topology, in about a millisecond, and unloads them with the last.
  static const Handle keepsPlugins = make();
  Handle handle = make();
  hwloc_topology_t topology = handle.get();
  // Devices are of no use here, and looking for them takes most of the time.
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  return handle;
}

/// Threads of a host that a description may have. hwloc makes all of them before anybody can count them, and takes a
/// fifth of a second for these, and seven times that for twice as many.
constexpr std::uint64_t mostDescribed = 2048;

/// Whether it has no more than that: the product of its numbers, which stand outside of parentheses and of names such
/// as l3. Those that begin with 0 would be octal or hexadecimal ones to hwloc.
bool describesFew(std::string_view description) {
  const char* const end = description.data() + description.size();
  std::uint64_t threads = 1;
  bool isInside = false, isInWord = false;
  for (const char& c : description) {
    if (c == '(' || c == ')') isInside = c == '(';
    const bool begins = !isInside && !isInWord && std::isdigit(static_cast<unsigned char>(c)) != 0;
    isInWord = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!begins) continue;
    std::uint64_t number = 0;
    const bool isRead = std::from_chars(&c, end, number).ec == std::errc();
    if (c == '0' || !isRead || number > mostDescribed / threads) return false;
    threads *= number;
  }
  return true;
}

/// hwloc's own words for a core: with its hardware threads.
struct Core {
  hwloc_obj_t object;  // the core, or a thread that belongs to none: some boards and virtual machines tell of no cores
  std::vector<std::uint32_t> threads;
};

/// Of the threads that may be used: what is offline or not allowed is no object.
std::vector<Core> coresOf(hwloc_topology_t topology, const std::string& where) {
  constexpr std::size_t mostThreads = 64;
  std::vector<Core> cores;
  for (hwloc_obj_t thread = nullptr;
       (thread = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, thread)) != nullptr;) {
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, thread);
    const bool isNext = core == nullptr || cores.empty() || cores.back().object != core;
    if (isNext) cores.push_back({core == nullptr ? thread : core, {}});
    cores.back().threads.push_back(thread->os_index);
    if (cores.size() > mostCores || cores.back().threads.size() > mostThreads) {
      fail(taccInvalidArgument, "{}: a host with more than {} cores, or {} threads of one core", where, mostCores,
           mostThreads);
    }
  }
  if (cores.empty()) fail(taccInvalidArgument, "{}: hwloc finds no cores", where);
  for (Core& core : cores) std::sort(core.threads.begin(), core.threads.end());
  return cores;
}

/// A possible level: which of its groups each core is in.
struct Candidate {
  InnerLevel level;
  std::vector<std::uint64_t> groupOf;

  std::vector<std::uint32_t> starts() const {
    std::vector<std::uint32_t> result;
    for (std::uint32_t core = 0; core < groupOf.size(); ++core) {
      if (core == 0 || groupOf[core] != groupOf[core - 1]) result.push_back(core);
    }
    return result;
  }
};

constexpr std::uint64_t withoutGroup = std::uint64_t{1} << 63;

/// Groups of cores below the same object of a type. A core without one is a group of its own. Nothing if none has one.
std::optional<Candidate> below(hwloc_topology_t topology, const std::vector<Core>& cores, LevelKind kind,
                               hwloc_obj_type_t type) {
  Candidate result{{kind}, {}};
  bool any = false;
  for (std::size_t core = 0; core < cores.size(); ++core) {
    const hwloc_obj_t above = hwloc_get_ancestor_obj_by_type(topology, type, cores[core].object);
    any = any || above != nullptr;
    result.groupOf.push_back(above != nullptr ? above->gp_index & ~withoutGroup : withoutGroup | core);
    if (above != nullptr && result.level.bytes == 0 && kind == LevelKind::cache && above->attr != nullptr)
      result.level.bytes = static_cast<double>(above->attr->cache.size);
  }
  return any ? std::optional(std::move(result)) : std::nullopt;
}

/// The numbers in a set, which may have no end.
std::vector<std::uint32_t> numbersIn(hwloc_const_bitmap_t set) {
  constexpr int greatest = 65536;
  std::vector<std::uint32_t> numbers;
  if (set == nullptr) return numbers;
  for (int at = hwloc_bitmap_first(set); at >= 0 && at < greatest; at = hwloc_bitmap_next(set, at))
    numbers.push_back(static_cast<std::uint32_t>(at));
  return numbers;
}

/// Cores by the memory that is nearest to them: of several NUMA nodes that one which the fewest cores have, since
/// others hang at the whole socket or machine (HBM beside DRAM, CXL, memory without cores). A node that may not be used
/// is no object, but its cores still tell which it is. Cores of which nobody says anything are together.
std::optional<Candidate> byMemory(const std::vector<Core>& cores) {
  std::vector<std::vector<std::uint32_t>> nodesOf;
  std::map<std::uint32_t, std::size_t> coresAt;
  for (const Core& core : cores) {
    std::vector<std::uint32_t> nodes = numbersIn(core.object->nodeset);
    if (nodes.empty()) nodes = numbersIn(core.object->complete_nodeset);
    for (const std::uint32_t node : nodes) ++coresAt[node];
    nodesOf.push_back(std::move(nodes));
  }
  if (coresAt.empty()) return std::nullopt;
  Candidate result{{LevelKind::numa}, {}};
  for (const std::vector<std::uint32_t>& nodes : nodesOf) {
    const auto nearest = std::ranges::min_element(nodes, {}, [&](std::uint32_t node) { return coresAt.at(node); });
    result.groupOf.push_back(nearest == nodes.end() ? withoutGroup : *nearest);
  }
  return result;
}

hwloc_obj_type_t sharedCache(hwloc_topology_t topology, std::size_t cores) {
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
    const int count = hwloc_get_nbobjs_by_type(topology, type);
    if (count > 0 && static_cast<std::size_t>(count) < cores) return type;
  }
  return HWLOC_OBJ_L3CACHE;
}

NodeDescription describe(hwloc_topology_t topology, const std::string& where) {
  const std::vector<Core> cores = coresOf(topology, where);
  NodeDescription node;
  for (const Core& core : cores) node.cores.push_back(core.threads);

  std::vector<Candidate> levels;
  const auto consider = [&](std::optional<Candidate> level) {
    if (!level) return;
    const bool isShared = level->starts().size() < cores.size();
    if (level->level.kind == LevelKind::cache && !isShared) return;
    levels.push_back(*std::move(level));
  };
  consider(below(topology, cores, LevelKind::cache, sharedCache(topology, cores.size())));
  consider(byMemory(cores));
  consider(below(topology, cores, LevelKind::socket, HWLOC_OBJ_PACKAGE));
  // A die that is just what another level has already told of says nothing.
  std::optional<Candidate> die = below(topology, cores, LevelKind::die, HWLOC_OBJ_DIE);
  const auto isSameAsDie = [&](const Candidate& level) { return level.starts() == die->starts(); };
  if (die && std::ranges::none_of(levels, isSameAsDie)) consider(std::move(die));
  // Which contains which differs from machine to machine: the more groups, the further inside.
  std::stable_sort(levels.begin(), levels.end(),
                   [](const Candidate& a, const Candidate& b) { return a.starts().size() > b.starts().size(); });
  node.nesting = Nesting(static_cast<std::uint32_t>(cores.size()));
  for (const Candidate& level : levels)
    if (node.nesting.add(level.starts())) node.levels.push_back(level.level);
  return node;
}

/// The version in `<topology version="3.0">`; hwloc 1 wrote none. `at`: where its number stands.
struct XmlVersion {
  int major = 1;
  std::size_t at = 0, size = 0;
};

XmlVersion versionOf(std::string_view xml) {
  constexpr std::string_view tag = "<topology", key = "version=";
  const std::size_t begin = xml.find(tag);
  if (begin == std::string_view::npos) return {};
  const std::string_view head = xml.substr(begin, xml.find('>', begin) - begin);
  const std::size_t found = head.find(key);
  if (found == std::string_view::npos || found + key.size() + 1 >= head.size()) return {};
  const std::size_t value = found + key.size() + 1;
  const std::size_t end = head.find(head[value - 1], value);
  if (end == std::string_view::npos) return {};
  const std::string_view number = head.substr(value, end - value);
  const auto major = parseInteger(number.substr(0, number.find('.')), 1, 1000);
  return major ? XmlVersion{static_cast<int>(*major), begin + value, number.size()} : XmlVersion{};
}

int hwlocVersion() { return static_cast<int>(hwloc_get_api_version() >> 16); }

NodeDescription readXml(std::string_view xml, const std::string& where) {
  std::string text(xml);  // ended by a zero, which counts as a part of the buffer
  const XmlVersion version = versionOf(text);
  // What version 3 writes otherwise concerns devices and remarks, which nobody looks at here; version 2 refuses it for
  // its number.
  if (version.major == 3 && hwlocVersion() == 2) text.replace(version.at, version.size, "2.0");
  const Handle topology = init();
  if (text.size() >= static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      hwloc_topology_set_xmlbuffer(topology.get(), text.c_str(), static_cast<int>(text.size()) + 1) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    if (version.major > hwlocVersion()) {
      fail(taccInvalidArgument,
           "{}: hwloc {} wrote this XML, and the hwloc {} of this build cannot read it; right is what there \"lstopo "
           "--export-xml-flags v2 FILE.xml\" writes",
           where, version.major, hwlocVersion());
    }
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

NodeDescription wholeNodeHere() {
  const Handle topology = init();
  if (hwloc_topology_set_flags(topology.get(), HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
      hwloc_topology_load(topology.get()) != 0)
    failErrno("hwloc cannot look at this host");
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
  if (!describesFew(description) || hwloc_topology_set_synthetic(topology.get(), description.c_str()) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    fail(taccInvalidArgument,
         "{}: hwloc cannot make a host of up to {} threads from \"{}\"; right is, for instance, "
         "\"pack:2 numa:1 l3:4 core:8 pu:2\"",
         where, mostDescribed, shownText(description));
  }
  return describe(topology.get(), where);
}

}  // namespace tacc
