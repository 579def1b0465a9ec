#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/slurm.hpp"

namespace tacc {
namespace {

class BlockTopology {
 public:
  BlockTopology(const SlurmBlocks& blocks, const std::string& origin) : blocks_(blocks.blocks), origin_(origin) {
    index();
    LevelDraft level;
    level.level.name = "block";
    for (const std::size_t b : blockOf_) level.groupOf.push_back(blocks_[b].name);
    draft_.levels.push_back(std::move(level));
    if (blocks.joined.empty())
      joinBySizes(blocks);
    else
      joinByNames(blocks.joined);
  }

  Topology make() {
    try {
      return build(std::move(draft_));
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", origin_, error.what());
    }
  }

 private:
  void index() {
    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const SlurmBlocks::Block& block = blocks_[b];
      const auto [other, isNew] = byName_.try_emplace(block.name, b);
      if (!isNew) {
        fail(taccInvalidArgument, "{}: the block {} stands in {} already", block.where, shownText(block.name),
             blocks_[other->second].where);
      }
      for (const std::string& host : block.hosts) {
        const auto [at, isFirst] = seen.try_emplace(host, b);
        if (!isFirst && at->second == b) continue;
        if (!isFirst) {
          fail(taccInvalidArgument, "{}: the host {} is in the block {} already ({})", block.where, host,
               shownText(blocks_[at->second].name), blocks_[at->second].where);
        }
        draft_.hosts.push_back(host);
        blockOf_.push_back(b);
      }
    }
    if (draft_.hosts.empty()) fail(taccInvalidArgument, "{}: no block has hosts", origin_);
  }

  /// A level with one group says no more than the root, and one with the groups of the level below no more than that.
  void add(std::string name, std::vector<std::string> groupOf) {
    const std::vector<std::string>& below = draft_.levels.back().groupOf;
    const auto count = [](const std::vector<std::string>& of) {
      return std::set<std::string>(of.begin(), of.end()).size();
    };
    const std::size_t groups = count(groupOf);
    if (groups < 2 || groups == count(below)) return;
    LevelDraft level;
    level.level.kind = LevelKind::group;
    level.level.name = std::move(name);
    level.groupOf = std::move(groupOf);
    draft_.levels.push_back(std::move(level));
  }

  void joinBySizes(const SlurmBlocks& blocks) {
    std::vector<std::uint32_t> sizes = blocks.sizes;
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (std::size_t i = 1; i < sizes.size(); ++i) {  // the first is the block itself; the others join whole blocks
      if (sizes[i] % sizes[i - 1] != 0) {
        fail(taccInvalidArgument,
             "{}: a block size of {} is no multiple of {}; each joins whole blocks of the one before",
             blocks.sizesWhere, sizes[i], sizes[i - 1]);
      }
      const std::size_t joined = sizes[i] / sizes.front();
      std::vector<std::string> groupOf;
      for (const std::size_t b : blockOf_) {
        const std::size_t first = b / joined * joined, last = std::min(first + joined, blocks_.size()) - 1;
        groupOf.push_back(first == last ? blocks_[first].name
                                        : fmt::format("{} to {}", blocks_[first].name, blocks_[last].name));
      }
      add(fmt::format("{} blocks", joined), std::move(groupOf));
    }
  }

  void joinByNames(const std::vector<SlurmBlocks::Joined>& all) {
    std::map<std::pair<std::uint32_t, std::size_t>, std::vector<const SlurmBlocks::Joined*>> levels;
    for (const SlurmBlocks::Joined& one : all) {
      // The last of a level may have fewer blocks than the others, so where sizes are told they tell the level.
      levels[{one.size, one.size == 0 ? one.blocks.size() : 0}].push_back(&one);
    }
    for (const auto& [size, level] : levels) {
      std::vector<const SlurmBlocks::Joined*> joinedOf(blocks_.size());
      std::size_t most = 0;
      for (const SlurmBlocks::Joined* one : level) {
        for (const std::string& name : one->blocks) {
          const auto block = byName_.find(name);
          if (block == byName_.end()) {
            fail(taccInvalidArgument, "{}: {} joins the block {}, of which there is no line", one->where,
                 shownText(one->name), shownText(name));
          }
          const SlurmBlocks::Joined*& joined = joinedOf[block->second];
          if (joined != nullptr && joined != one) {
            fail(taccInvalidArgument, "{}: the block {} is in {} already ({})", one->where, shownText(name),
                 shownText(joined->name), joined->where);
          }
          joined = one;
        }
        most = std::max(most, one->blocks.size());
      }
      std::vector<std::string> groupOf;
      for (std::size_t host = 0; host < blockOf_.size(); ++host) {
        const SlurmBlocks::Joined* joined = joinedOf[blockOf_[host]];
        groupOf.push_back(joined == nullptr ? draft_.levels.back().groupOf[host] : joined->name);
      }
      add(fmt::format("{} blocks", most), std::move(groupOf));
    }
  }

  const std::vector<SlurmBlocks::Block>& blocks_;
  const std::string& origin_;
  std::unordered_map<std::string_view, std::size_t> byName_;
  std::vector<std::size_t> blockOf_;  // by host
  TopologyDraft draft_;
};

}  // namespace

Topology topologyOfBlocks(const SlurmBlocks& blocks, const std::string& origin) {
  return BlockTopology(blocks, origin).make();
}

}  // namespace tacc
