#include "launched/control.hpp"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "contestants/id_text.hpp"

namespace tacc::bench {
namespace {

/// The environment without a variable for as long as this lives.
class WithoutVariable {
 public:
  explicit WithoutVariable(const char* name) : name_(name) {
    if (const char* value = std::getenv(name)) value_ = value;
    ::unsetenv(name);
  }
  ~WithoutVariable() {
    if (value_) ::setenv(name_, value_->c_str(), 1);
  }
  WithoutVariable(const WithoutVariable&) = delete;
  WithoutVariable& operator=(const WithoutVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> value_;
};

void require(taccResult_t result, taccComm_t comm) {
  if (result == taccSuccess) return;
  std::string message = comm != nullptr ? taccGetLastError(comm) : "";
  if (message.empty()) message = taccGetLastError(nullptr);
  throw std::runtime_error(message);
}

}  // namespace

Control::Control(const Options& options, Agent& agent) {
  // Ranks wait here while others measure; the time-out is for the calls that are measured.
  const WithoutVariable timeout("TACC_TIMEOUT");
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.name = "tacc_bench's control";
  config.operationTimeout = 0;
  if (options.peers.empty()) {
    require(taccCommInitEnv(&comm_, &config), nullptr);
  } else {
    taccUniqueId id{};
    if (options.job->rank == 0) require(taccGetUniqueId(&id), nullptr);
    id = fromHex(agent.shareByPeer(options.peers.front(), toHex(id)));
    require(taccCommInitRankConfig(&comm_, options.job->ranks, id, options.job->rank, &config), nullptr);
  }
  taccNodeInfo_t info{};
  info.size = sizeof info;
  require(taccCommUserRank(comm_, &rank_), comm_);
  require(taccCommCount(comm_, &ranks_), comm_);
  require(taccCommGetNodeInfo(comm_, &info), comm_);
  ranksHere_ = info.localRanks;
}

Control::~Control() { taccCommDestroy(comm_); }

std::string Control::broadcast(const std::string& text) {
  std::uint64_t bytes = text.size();
  require(taccBcast(&bytes, 1, taccUint64, 0, comm_, nullptr), comm_);
  std::string all = text;
  all.resize(bytes);
  if (bytes > 0) require(taccBcast(all.data(), bytes, taccUint8, 0, comm_, nullptr), comm_);
  return all;
}

std::vector<std::string> Control::gather(const std::string& text) {
  std::uint64_t longest = text.size();
  require(taccAllReduce(&longest, &longest, 1, taccUint64, taccMax, comm_, nullptr), comm_);
  // Each text with a byte that ends it, which no text has.
  const std::size_t each = longest + 1;
  std::string own = text, all;
  own.resize(each);
  if (rank_ == 0) all.resize(each * static_cast<std::size_t>(ranks_));
  require(taccGather(own.data(), all.data(), each, taccUint8, 0, comm_, nullptr), comm_);
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size(); at += each) texts.emplace_back(all.c_str() + at);
  return texts;
}

}  // namespace tacc::bench
