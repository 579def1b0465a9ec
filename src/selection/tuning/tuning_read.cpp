#include <algorithm>
#include <charconv>
#include <utility>

#include "algorithms/registry.hpp"
#include "core/parse.hpp"
#include "core/toml_table.hpp"
#include "selection/tuning/tuning_file.hpp"

namespace tacc {
namespace {

constexpr double longestMicroseconds = 1e12;
constexpr double fastestMegabytes = 1e9;
constexpr std::int64_t mostBytes = std::int64_t{1} << 50, mostTunedHosts = 1 << 20, mostRanks = 1 << 16;

/// What is asked for must be there.
template <class Value>
Value required(std::optional<Value> value, const TomlTable& table, std::string_view key, std::string_view example) {
  if (!value) fail(taccInvalidArgument, "{}: {} is missing; it must stand there like {}", table.where(), key, example);
  return *std::move(value);
}

class TuningReader {
 public:
  TuningReader(const toml::table& file, const std::string& origin) : origin_(origin), file_(file, "", origin) {
    tuning_.origin = origin;
  }

  Tuning read() {
    const std::int64_t format = required(file_.number("format", 0, mostBytes), file_, "format", "format = 1");
    if (format != tuningFormat)
      fail(taccInvalidArgument, "{} is {}, but this library knows {} alone; measure again with tacc_tune",
           file_.where("format"), format, tuningFormat);
    tuning_.place.version = required(file_.text("version"), file_, "version", "version = \"0.1.0\"");
    const toml::table* place = file_.table("place");
    if (place == nullptr) fail(taccInvalidArgument, "{}: the table [place] is missing", origin_);
    readPlace(*place);
    for (int c = 0; c < collectiveCount; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (const toml::table* sizes = file_.table(nameOf(collective))) readCollective(collective, *sizes);
    }
    file_.finish();
    return std::move(tuning_);
  }

 private:
  void readPlace(const toml::table& raw) {
    TomlTable table(raw, "[place]", origin_);
    TuningPlace& place = tuning_.place;
    place.transport = required(table.text("transport"), table, "transport", "transport = \"tcp\"");
    const std::string topology = required(table.text("topology"), table, "topology", "topology = \"0123456789abcdef\"");
    place.isMeasured = topology == "measured";
    if (!place.isMeasured) place.topology = digestOf(topology, table);
    const auto hosts =
        static_cast<std::size_t>(required(table.number("hosts", 1, mostTunedHosts), table, "hosts", "hosts = 8"));
    const std::vector<std::int64_t> ranks = table.numbers("ranks_per_host", 1, mostRanks);
    if (ranks.size() != 1 && ranks.size() != hosts)
      fail(taccInvalidArgument, "{} has {} numbers; it must have one for all hosts, or one for each of the {}",
           table.where("ranks_per_host"), ranks.size(), hosts);
    for (std::size_t host = 0; host < hosts; ++host)
      place.ranksOfHost.push_back(static_cast<int>(ranks[ranks.size() == 1 ? 0 : host]));
    place.speed.latency = table.decimal("latency_us", longestMicroseconds).value_or(0) * 1e-6;
    place.speed.bytesPerSecond = required(table.decimal("megabytes_per_second", fastestMegabytes), table,
                                          "megabytes_per_second", "megabytes_per_second = 23.5") *
                                 1e6;
    table.finish();
  }

  static std::uint64_t digestOf(const std::string& text, const TomlTable& table) {
    std::uint64_t digest = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), digest, 16);
    if (problem != std::errc() || end != text.data() + text.size() || text.size() != 16)
      fail(taccInvalidArgument, "{} must be sixteen hexadecimal digits, or \"measured\"", table.where("topology"));
    return digest;
  }

  void readCollective(Collective collective, const toml::table& raw) {
    TomlTable table(raw, fmt::format("[{}]", nameOf(collective)), origin_);
    TunedCollective measured{collective, {}};
    for (const toml::table* size : table.tables("sizes")) {
      measured.sizes.push_back(readSize(collective, *size));
      const std::size_t count = measured.sizes.size();
      if (count > 1 && measured.sizes[count - 2].bytes >= measured.sizes[count - 1].bytes)
        fail(taccInvalidArgument, "{}:{}, [{}] sizes: bytes = {} follows {}; they must ascend", origin_,
             measured.sizes[count - 1].line, nameOf(collective), measured.sizes[count - 1].bytes,
             measured.sizes[count - 2].bytes);
    }
    table.finish();
    if (measured.sizes.empty())
      fail(taccInvalidArgument, "{} has no sizes; there must be sizes = [ {{ bytes = 8, ... }} ]", table.where());
    tuning_.collectives.push_back(std::move(measured));
  }

  TunedSize readSize(Collective collective, const toml::table& raw) {
    TomlTable table(raw, fmt::format("[{}] sizes", nameOf(collective)), origin_);
    TunedSize size;
    size.line = static_cast<int>(raw.source().begin.line);
    size.bytes = static_cast<std::size_t>(required(table.number("bytes", 1, mostBytes), table, "bytes", "bytes = 8"));
    size.algorithm = readName(table, "algorithm", collective);
    if (size.algorithm.empty())
      fail(taccInvalidArgument, "{}: algorithm is missing; it must stand there like algorithm = \"{}\"", table.where(),
           algorithms().front().name);
    size.seconds = required(readTime(table, "us"), table, "us", "us = 812.5");
    size.next = readName(table, "next", collective);
    size.nextSeconds = readTime(table, "next_us").value_or(0);
    size.untuned = readName(table, "untuned", collective);
    size.untunedSeconds = readTime(table, "untuned_us").value_or(0);
    table.finish();
    return size;
  }

  static std::optional<double> readTime(TomlTable& table, std::string_view key) {
    const std::optional<double> microseconds = table.decimal(key, longestMicroseconds);
    return microseconds ? std::optional(*microseconds * 1e-6) : std::nullopt;
  }

  /// Empty: it is not there.
  std::string readName(TomlTable& table, std::string_view key, Collective collective) const {
    const std::optional<std::string> name = table.text(key);
    if (!name) return "";
    const bool isOneHost = tuning_.place.ranksOfHost.size() == 1;
    if (isOneHost && *name == eagerRoute) return *name;
    const Algorithm* algorithm = findAlgorithm(*name);
    std::vector<std::string_view> names;
    if (isOneHost) names.push_back(eagerRoute);
    for (const Algorithm& known : algorithms())
      if (serves(known, collective)) names.push_back(known.name);
    if (algorithm == nullptr) {
      const std::string_view meant = nearest(*name, names);
      fail(taccInvalidArgument, "{} is \"{}\", which is no algorithm{}; there are {}", table.where(key), *name,
           meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant), listOf(names));
    }
    if (!serves(*algorithm, collective))
      fail(taccInvalidArgument, "{} is \"{}\", which does not serve {} of {} ranks on {} hosts; these do: {}",
           table.where(key), *name, nameOf(collective), tuning_.place.ranks(), tuning_.place.ranksOfHost.size(),
           listOf(names));
    return *name;
  }

  /// Whether it can be that it served: what needs groups of ranks is left to those who know them.
  bool serves(const Algorithm& algorithm, Collective collective) const {
    const int hosts = static_cast<int>(tuning_.place.ranksOfHost.size());
    return algorithm.looksAtLayout || algorithm.serves({collective, tuning_.place.ranks(), 0}) ||
           (hosts > 1 && algorithm.serves({collective, hosts, 0}));
  }

  const std::string& origin_;
  TomlTable file_;
  Tuning tuning_;
};

}  // namespace

Tuning tuningFromToml(std::string_view text, const std::string& origin) {
  const toml::table file = parseToml(text, origin);
  return TuningReader(file, origin).read();
}

}  // namespace tacc
