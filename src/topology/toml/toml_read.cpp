#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/parse.hpp"
#include "core/toml_table.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/model/units.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/toml/toml.hpp"

namespace tacc {
namespace {

std::optional<double> readLatency(TomlTable& table, std::string_view key) {
  const std::optional<std::string> text = table.text(key);
  if (!text) return std::nullopt;
  const std::optional<double> value = parseLatency(*text);
  if (!value)
    fail(taccInvalidArgument, "{} is \"{}\", but must be {}", table.where(key), shownText(*text), latencyExample);
  return value;
}

std::optional<double> bandwidthOf(std::string_view text, const std::string& where) {
  const std::optional<double> value = parseBandwidth(text);
  if (!value) fail(taccInvalidArgument, "{} is \"{}\", but must be {}", where, shownText(text), bandwidthExample);
  return value;
}

std::optional<double> readBandwidth(TomlTable& table, std::string_view key) {
  const std::optional<std::string> text = table.text(key);
  return text ? bandwidthOf(*text, table.where(key)) : std::nullopt;
}

template <class Value, std::size_t size>
Value choose(const std::array<std::string_view, size>& names, std::string_view text, const std::string& where) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    const std::string_view meant = nearest(text, names);
    fail(taccInvalidArgument, "{} is \"{}\"{}; allowed are {}", where, shownText(text),
         meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant), listOf(names));
  }
  return static_cast<Value>(found - names.begin());
}

/// "number / 256", "number % 4", "position / 16": which group a host belongs to, by the number in its name or by its
/// place in the list of hosts.
class Rule {
 public:
  Rule(std::string_view text, const std::string& where) : where_(where) {
    const std::string given(text);
    const auto word = [&text] {
      while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
      const std::size_t end = std::min(text.find(' '), text.size());
      const std::string_view result = text.substr(0, end);
      text.remove_prefix(end);
      return result;
    };
    const std::string_view what = word(), operation = word(), divisor = word();
    const std::optional<std::int64_t> by = parseInteger(divisor, 1, 1'000'000'000);
    if ((what != "number" && what != "position") || (operation != "/" && operation != "%") || !by || !word().empty()) {
      fail(taccInvalidArgument,
           "{} is \"{}\", but must be like \"number / 256\" (the number in the host's name) or \"position / 16\" (its "
           "place "
           "in the list), with / or % and a number above 0",
           where_, shownText(given));
    }
    byNumber_ = what == "number";
    divides_ = operation == "/";
    by_ = static_cast<std::uint64_t>(*by);
  }

  std::string groupOf(const std::string& host, std::size_t position) const {
    std::uint64_t value = position;
    if (byNumber_) {
      const std::optional<std::uint64_t> number = numberIn(host);
      if (!number) fail(taccInvalidArgument, "{}: the host {} has no number in its name", where_, host);
      value = *number;
    }
    return std::to_string(divides_ ? value / by_ : value % by_);
  }

 private:
  std::string where_;
  bool byNumber_ = true, divides_ = true;
  std::uint64_t by_ = 1;
};

class Reader {
 public:
  Reader(const toml::table& file, const std::string& origin) : origin_(origin), file_(file, "", origin) {}

  Topology read() {
    draft_.name = file_.text("name").value_or("");
    for (const std::string& list : file_.texts("hosts")) addHosts(list, file_.where("hosts"));
    const bool listed = !draft_.hosts.empty();
    const toml::table* node = file_.table("node");
    const std::vector<const toml::table*> levels = file_.tables("level");
    const std::vector<const toml::table*> machines = file_.tables("machine");
    file_.finish();
    if (!listed) hostsFromGroups(levels);
    for (std::uint32_t i = 0; i < draft_.hosts.size(); ++i) {
      if (!indexOf_.try_emplace(draft_.hosts[i], i).second) {
        fail(taccInvalidArgument, "{}: the host {} stands twice; each is listed once", whereListed(i),
             shownText(draft_.hosts[i]));
      }
    }
    draft_.nodeOf.assign(draft_.hosts.size(), std::nullopt);
    if (node != nullptr) readNode(*node);
    for (std::size_t l = 0; l < levels.size(); ++l) readLevel(*levels[l], l + 1 == levels.size());
    firstMachine_ = static_cast<std::uint32_t>(draft_.nodes.size());
    for (const toml::table* machine : machines) readMachine(*machine);
    try {
      return build(std::move(draft_));
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", origin_, error.what());
    }
  }

 private:
  void addHosts(const std::string& list, const std::string& where) {
    listed_.emplace_back(draft_.hosts.size(), where);
    for (std::string& name : expandAt(list, where, mostHosts - std::min(mostHosts, draft_.hosts.size()))) {
      draft_.hosts.push_back(std::move(name));
    }
  }

  const std::string& whereListed(std::size_t host) const {
    return std::ranges::upper_bound(listed_, host, {}, &std::pair<std::size_t, std::string>::first)[-1].second;
  }

  static std::vector<std::string> expandAt(const std::string& list, const std::string& where,
                                           std::size_t most = mostHosts) {
    try {
      return expandHosts(list, most);
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", where, error.what());
    }
  }

  /// Without a list of hosts, the groups of the first level are one.
  void hostsFromGroups(const std::vector<const toml::table*>& levels) {
    const toml::node* groups = levels.empty() ? nullptr : levels.front()->get("groups");
    if (groups == nullptr || !groups->is_table()) {
      fail(taccInvalidArgument,
           "{}: there are no hosts; give hosts = \"node[001-256]\", or groups in the first [[level]]", origin_);
    }
    TomlTable table(*groups->as_table(), "[level.groups]", origin_);
    for (const auto& [key, members] : *groups->as_table()) {
      for (const std::string& list : table.texts(key.str())) addHosts(list, table.where(key.str()));
    }
  }

  void readFigures(TomlTable& table, Level& level) {
    if (const auto name = table.text("name")) level.name = *name;
    level.alpha = readLatency(table, "latency");
    level.bandwidth = readBandwidth(table, "bandwidth");
    level.rails = static_cast<std::uint32_t>(table.number("rails", 1, mostRails).value_or(1));
  }

  void readNode(const toml::table& raw) {
    TomlTable table(raw, "[node]", origin_);
    readFigures(table, draft_.node);
    draft_.node.uplink = readBandwidth(table, "uplink");
    if (const toml::table* uplinks = table.table("uplinks"); uplinks != nullptr)
      readHostUplinks(TomlTable(*uplinks, "[node.uplinks]", origin_));
    if (const auto synthetic = table.text("synthetic")) {
      draft_.nodes.push_back(nodeFromSynthetic(*synthetic, table.where("synthetic")));
      draft_.nodeOf.assign(draft_.hosts.size(), 0u);
    }
    table.finish();
  }

  void readHostUplinks(TomlTable table) {
    for (const auto& [key, value] : table.raw()) {
      const std::string_view list = key.str();
      const double rate = readBandwidth(table, list).value();
      for (std::string& host : expandAt(std::string(list), table.where(list))) {
        if (!indexOf_.contains(host))
          fail(taccInvalidArgument, "{}: there is no host {}; hosts are {}", table.where(list), shownText(host),
               someHosts(draft_.hosts));
        draft_.hostUplinks[std::move(host)] = rate;
      }
    }
  }

  void readLevel(const toml::table& raw, bool isLast) {
    const std::size_t number = draft_.levels.size() + 1;
    TomlTable table(raw, fmt::format("[[level]] {}", number), origin_);
    LevelDraft level;
    level.level.kind = number == 1 ? LevelKind::leaf : LevelKind::group;
    readFigures(table, level.level);
    const std::optional<std::string> kind = table.text("kind"), rule = table.text("rule"),
                                     wiring = table.text("wiring");
    const toml::table* groups = table.table("groups");
    const std::optional<std::string> uplink = table.text("uplink");
    const toml::table* uplinks = table.table("uplinks");
    if (wiring) level.level.wiring = choose<Wiring>(wiringNames, *wiring, table.where("wiring"));
    for (const std::int64_t extent : table.numbers("dimensions", 1, mostHosts)) {
      level.level.dimensions.push_back(static_cast<std::uint32_t>(extent));
    }
    level.level.links = static_cast<std::uint32_t>(table.number("links", 1, 1'000'000).value_or(0));
    level.level.linkBandwidth = readBandwidth(table, "link");
    table.finish();
    if (level.level.wiring != Wiring::tree && level.level.links == 0) level.level.links = 1;
    const bool isRoot = !rule && groups == nullptr;
    if (kind) {
      level.level.kind = choose<LevelKind>(levelKindNames, *kind, table.where("kind"));
      const bool isFit = isRoot ? level.level.kind == LevelKind::root
                                : level.level.kind == LevelKind::leaf || level.level.kind == LevelKind::group;
      if (!isFit) {
        fail(taccInvalidArgument, "{} is \"{}\", but must be {}", table.where("kind"), *kind,
             isRoot ? "root for a level without groups" : "leaf or group");
      }
    }
    if (rule && groups != nullptr)
      fail(taccInvalidArgument, "{}: a level has a rule or groups, not both", table.where("rule"));
    if (isRoot && !isLast) {
      fail(taccInvalidArgument, "{} has neither rule nor groups; only the last level, which joins all, needs none",
           table.where());
    }
    if (isRoot && (uplink || uplinks != nullptr)) {
      fail(taccInvalidArgument, "{}: the level that joins all has no outside, so it has no uplink",
           table.where("uplink"));
    }
    if (isRoot) {
      draft_.root = std::move(level.level);
      return;
    }
    if (level.level.name.empty()) level.level.name = nameOf(level.level.kind);
    if (rule) applyRule(Rule(*rule, table.where("rule")), level);
    if (groups != nullptr) readGroups(TomlTable(*groups, fmt::format("[[level]] {} groups", number), origin_), level);
    if (uplink) level.level.uplink = readUplink(*uplink, table.where("uplink"), level);
    if (uplinks != nullptr) readUplinks(TomlTable(*uplinks, "[level.uplinks]", origin_), level);
    draft_.levels.push_back(std::move(level));
  }

  void applyRule(const Rule& rule, LevelDraft& level) const {
    for (std::size_t i = 0; i < draft_.hosts.size(); ++i) level.groupOf.push_back(rule.groupOf(draft_.hosts[i], i));
  }

  /// Members are hosts, or groups of the level below.
  void readGroups(TomlTable table, LevelDraft& level) {
    level.groupOf.resize(draft_.hosts.size());
    std::vector<bool> isPlaced(draft_.hosts.size());
    std::unordered_map<std::string_view, std::vector<std::uint32_t>> below;
    if (!draft_.levels.empty()) {
      const std::vector<std::string>& names = draft_.levels.back().groupOf;
      for (std::uint32_t i = 0; i < names.size(); ++i) below[names[i]].push_back(i);
    }
    // Only where all are numbers behind the mark: a group may be called so, too.
    level.hasNames = std::any_of(table.raw().begin(), table.raw().end(), [](const auto& entry) {
      const std::string_view name = entry.first.str();
      return !name.starts_with('#') || !parseInteger(name.substr(1), 0, mostHosts);
    });
    for (const auto& [key, value] : table.raw()) {
      const std::string_view name = key.str();
      const auto place = [&](std::uint32_t host) {
        if (isPlaced[host]) {
          fail(taccInvalidArgument, "{}: the host {} is in \"{}\" already", table.where(name), draft_.hosts[host],
               shownText(level.groupOf[host]));
        }
        isPlaced[host] = true;
        level.groupOf[host] = name;
      };
      for (const std::string& list : table.texts(name)) {
        for (const std::string& member : expandAt(list, table.where(name))) {
          const auto host = indexOf_.find(member);
          const auto group = below.find(member);
          if (host != indexOf_.end()) {
            place(host->second);
          } else if (group != below.end()) {
            for (const std::uint32_t one : group->second) place(one);
          } else {
            fail(taccInvalidArgument, "{}: there is no host{} \"{}\"; hosts are {}", table.where(name),
                 below.empty() ? "" : " and no group of the level below", member, someHosts(draft_.hosts));
          }
        }
      }
    }
    std::vector<std::string> missing;
    for (std::uint32_t i = 0; i < draft_.hosts.size(); ++i) {
      if (!isPlaced[i]) missing.push_back(draft_.hosts[i]);
    }
    if (!missing.empty()) {
      fail(taccInvalidArgument, "{}: the host{} {} {} in no group", table.where(), missing.size() == 1 ? "" : "s",
           someHosts(missing), missing.size() == 1 ? "is" : "are");
    }
  }

  /// A speed, or a ratio such as "4:1": the hosts of a group together have four times what leaves the group.
  std::optional<double> readUplink(const std::string& text, const std::string& where, LevelDraft& level) const {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) return bandwidthOf(text, where);
    const auto inside = parseInteger(std::string_view(text).substr(0, colon), 1, 1'000'000);
    const auto outside = parseInteger(std::string_view(text).substr(colon + 1), 1, 1'000'000);
    if (!inside || !outside)
      fail(taccInvalidArgument, "{} is \"{}\", but must be like \"4:1\" or \"96 GB/s\"", where, shownText(text));
    if (!draft_.node.uplink) fail(taccInvalidArgument, "{}: a ratio needs the uplink of a host in [node]", where);
    std::unordered_map<std::string_view, std::uint32_t> sizes;
    for (const std::string& group : level.groupOf) ++sizes[group];
    std::uint32_t largest = 0;
    for (const auto& [name, size] : sizes) largest = std::max(largest, size);
    const auto share = [&](std::uint32_t hosts) {
      return hosts * *draft_.node.uplink * static_cast<double>(*outside) / static_cast<double>(*inside);
    };
    for (const auto& [name, size] : sizes) {
      if (size != largest) level.uplinks.emplace(name, share(size));
    }
    return share(largest);
  }

  static void readUplinks(TomlTable table, LevelDraft& level) {
    for (const auto& [key, value] : table.raw()) {
      const std::string_view name = key.str();
      if (std::find(level.groupOf.begin(), level.groupOf.end(), name) == level.groupOf.end()) {
        std::vector<std::string> groups = level.groupOf;
        std::ranges::sort(groups);
        groups.erase(std::ranges::unique(groups).begin(), groups.end());
        fail(taccInvalidArgument, "{}: there is no such group; groups are {}", table.where(name), someHosts(groups));
      }
      level.uplinks[std::string(name)] = readBandwidth(table, name).value();
    }
  }

  void readMachine(const toml::table& raw) {
    TomlTable table(raw, "[[machine]]", origin_);
    const std::vector<std::string> lists = table.texts("hosts");
    const std::optional<std::string> synthetic = table.text("synthetic"), cpus = table.text("cpus");
    const std::vector<const toml::table*> levels = table.tables("level");
    table.finish();
    if (synthetic.has_value() == cpus.has_value()) {
      fail(taccInvalidArgument,
           "{}: a machine has either cpus or synthetic, e.g. synthetic = \"pack:2 numa:2 core:8 pu:1\"", table.where());
    }
    const auto number = static_cast<std::uint32_t>(draft_.nodes.size());
    draft_.nodes.push_back(synthetic ? nodeFromSynthetic(*synthetic, table.where("synthetic"))
                                     : readCores(*cpus, levels, table.where("cpus")));
    for (const std::string& list : lists) {
      for (const std::string& name : expandAt(list, table.where("hosts"))) {
        const auto host = indexOf_.find(name);
        if (host == indexOf_.end()) fail(taccInvalidArgument, "{}: there is no host {}", table.where("hosts"), name);
        std::optional<std::uint32_t>& node = draft_.nodeOf[host->second];
        if (node && *node >= firstMachine_) {
          fail(taccInvalidArgument, "{}: the host {} is described twice", table.where("hosts"), name);
        }
        node = number;
      }
    }
    if (lists.empty()) draft_.nodeOf.assign(draft_.hosts.size(), number);
  }

  NodeDescription readCores(const std::string& cpus, const std::vector<const toml::table*>& levels,
                            const std::string& where) {
    NodeDescription node;
    node.cores = parseCpus(cpus, where);
    node.nesting = Nesting(static_cast<std::uint32_t>(node.cores.size()));
    for (const toml::table* raw : levels) {
      TomlTable table(*raw, "[[machine.level]]", origin_);
      const std::string kind = table.text("kind").value_or(""), sizes = table.text("sizes").value_or("");
      const std::optional<std::string> bytes = table.text("bytes");
      table.finish();
      InnerLevel level{choose<LevelKind>(levelKindNames, kind, table.where("kind"))};
      if (level.kind < LevelKind::cache || level.kind > LevelKind::socket) {
        fail(taccInvalidArgument, "{} is \"{}\", but must be cache, numa, die or socket", table.where("kind"), kind);
      }
      if (bytes) {
        const std::optional<double> size = parseBytes(*bytes);
        if (!size)
          fail(taccInvalidArgument, "{} is \"{}\", but must be like \"32 MiB\"", table.where("bytes"),
               shownText(*bytes));
        level.bytes = *size;
      }
      if (node.levels.size() >= mostLevels ||
          !node.nesting.add(parseSizes(sizes, node.nesting.leaves(), table.where("sizes")))) {
        fail(taccInvalidArgument, "{}: \"{}\" cuts a group of the level before it in two", table.where("sizes"),
             shownText(sizes));
      }
      node.levels.push_back(level);
    }
    return node;
  }

  const std::string& origin_;
  TomlTable file_;
  TopologyDraft draft_;
  std::uint32_t firstMachine_ = 0;  // of draft_.nodes: those before it are what [node] says of all hosts
  std::unordered_map<std::string_view, std::uint32_t> indexOf_;
  std::vector<std::pair<std::size_t, std::string>> listed_;  // the first host of each list, and where that stands
};

}  // namespace

Topology topologyFromToml(std::string_view text, const std::string& origin) {
  const toml::table file = parseToml(text, origin);
  return Reader(file, origin).read();
}

}  // namespace tacc
