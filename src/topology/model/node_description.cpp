#include "topology/model/node_description.hpp"

#include <algorithm>
#include <iterator>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/digest.hpp"
#include "topology/model/host_list.hpp"
#include "topology/model/units.hpp"

namespace tacc {
namespace {

constexpr std::int64_t greatestCpu = 1'000'000;

/// Calls `take` with each part of the text between the separators.
template <class Take>
void split(std::string_view text, char separator, Take take) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    take(part);
    begin = end + 1;
  }
}

struct CpuRange {
  std::uint32_t first = 0, size = 0;
};

CpuRange rangeOf(std::string_view text, std::string_view where) {
  const std::size_t dash = text.find('-');
  const auto first = parseInteger(text.substr(0, dash), 0, greatestCpu);
  const auto last = dash == std::string_view::npos ? first : parseInteger(text.substr(dash + 1), 0, greatestCpu);
  if (!first || !last || *last < *first || *last - *first >= mostCores) {
    fail(taccInvalidArgument, "{}: \"{}\" is no range of cpus; right is, for instance, 0-31 or 0-31+32-63", where,
         shownText(text));
  }
  return {static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last - *first) + 1};
}

}  // namespace

std::optional<std::uint32_t> NodeDescription::coreOf(std::uint32_t cpu) const {
  for (std::uint32_t core = 0; core < cores.size(); ++core) {
    if (std::find(cores[core].begin(), cores[core].end(), cpu) != cores[core].end()) return core;
  }
  return std::nullopt;
}

std::uint32_t NodeDescription::count(LevelKind kind) const {
  if (kind == LevelKind::core) return static_cast<std::uint32_t>(cores.size());
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].kind == kind) return nesting.groups(static_cast<int>(i) + 1);
  }
  return 1;
}

std::string NodeDescription::summary() const {
  std::string text;
  for (std::size_t i = levels.size(); i-- > 0;) {
    const std::uint32_t groups = nesting.groups(static_cast<int>(i) + 1);
    const bool several = groups != 1 && levels[i].kind != LevelKind::numa;
    fmt::format_to(std::back_inserter(text), "{} {}{}{}, ", groups, nameOf(levels[i].kind), several ? "s" : "",
                   levels[i].bytes > 0 ? fmt::format(" of {}", formatBytes(levels[i].bytes)) : "");
  }
  std::size_t threads = 0;
  for (const auto& core : cores) threads += core.size();
  return fmt::format("{}{} core{}, {} thread{}", text, cores.size(), cores.size() == 1 ? "" : "s", threads,
                     threads == 1 ? "" : "s");
}

void NodeDescription::addTo(Digest& digest) const {
  digest.add(formatCpus(cores));
  digest.add(std::uint64_t{levels.size()});
  for (std::size_t i = 0; i < levels.size(); ++i) {
    digest.add(nameOf(levels[i].kind));
    digest.add(std::optional(levels[i].bytes));
    digest.add(formatSizes(nesting, static_cast<int>(i) + 1));
  }
}

std::string formatCpus(const std::vector<std::vector<std::uint32_t>>& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t next = i + 1;
    const auto continues = [&] {
      if (next >= cores.size() || cores[next].size() != cores[i].size()) return false;
      for (std::size_t t = 0; t < cores[i].size(); ++t) {
        if (cores[next][t] != cores[i][t] + (next - i)) return false;
      }
      return true;
    };
    while (continues()) ++next;
    text += text.empty() ? "" : ",";
    for (std::size_t t = 0; t < cores[i].size(); ++t) {
      fmt::format_to(std::back_inserter(text), "{}{}", t > 0 ? "+" : "", cores[i][t]);
      if (next - i > 1) fmt::format_to(std::back_inserter(text), "-{}", cores[next - 1][t]);
    }
    i = next;
  }
  return text;
}

std::vector<std::vector<std::uint32_t>> parseCpus(std::string_view text, std::string_view where) {
  std::vector<std::vector<std::uint32_t>> cores;
  std::vector<std::uint32_t> seen;
  split(text, ',', [&](std::string_view item) {
    std::vector<CpuRange> threads;
    split(item, '+', [&](std::string_view range) { threads.push_back(rangeOf(range, where)); });
    for (const CpuRange& range : threads) {
      if (range.size != threads.front().size) {
        fail(taccInvalidArgument, "{}: the ranges of \"{}\" are not equally long, so threads belong to no core", where,
             shownText(item));
      }
    }
    if (threads.size() > 64 || cores.size() + threads.front().size > mostCores) {
      fail(taccInvalidArgument, "{}: more than {} cores or 64 threads a core in one host", where, mostCores);
    }
    for (std::uint32_t i = 0; i < threads.front().size; ++i) {
      std::vector<std::uint32_t>& core = cores.emplace_back();
      for (const CpuRange& range : threads) core.push_back(range.first + i);
      seen.insert(seen.end(), core.begin(), core.end());
    }
  });
  std::sort(seen.begin(), seen.end());
  const auto twice = std::adjacent_find(seen.begin(), seen.end());
  if (twice != seen.end())
    fail(taccInvalidArgument, "{}: cpu {} stands twice in \"{}\"", where, *twice, shownText(text));
  return cores;
}

std::string formatSizes(const Nesting& nesting, int level) {
  std::string text;
  for (std::uint32_t g = 0; g < nesting.groups(level);) {
    const std::uint32_t size = nesting.leavesOf(level, g).size();
    std::uint32_t next = g + 1;
    while (next < nesting.groups(level) && nesting.leavesOf(level, next).size() == size) ++next;
    text += text.empty() ? "" : ",";
    if (next - g > 1) fmt::format_to(std::back_inserter(text), "{}*", next - g);
    fmt::format_to(std::back_inserter(text), "{}", size);
    g = next;
  }
  return text;
}

std::vector<std::uint32_t> parseSizes(std::string_view text, std::uint32_t cores, std::string_view where) {
  std::vector<std::uint32_t> starts;
  std::uint32_t end = 0;
  const auto reject = [&] {
    fail(taccInvalidArgument,
         "{}: \"{}\" does not cut {} cores into groups; right is, for instance, \"4*16\" for 64 cores, or \"8,4*2\" "
         "for 16",
         where, shownText(text), cores);
  };
  split(text, ',', [&](std::string_view item) {
    const std::size_t star = item.find('*');
    const auto groups =
        star == std::string_view::npos ? std::optional<std::int64_t>(1) : parseInteger(item.substr(0, star), 1, cores);
    const auto size = parseInteger(star == std::string_view::npos ? item : item.substr(star + 1), 1, cores);
    if (!groups || !size || *groups * *size > static_cast<std::int64_t>(cores - end)) reject();
    for (std::int64_t g = 0; g < *groups; ++g, end += static_cast<std::uint32_t>(*size)) starts.push_back(end);
  });
  if (end != cores) reject();
  return starts;
}

}  // namespace tacc
