#include "support/virtual_hosts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/interrupt.hpp"
#include "support/process.hpp"

namespace tacc::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;
constexpr std::chrono::seconds hostPatience{60};
constexpr size_t shownLogBytes = 2000;

}  // namespace

VirtualHosts::VirtualHosts(const ClusterShape& shape, const std::string& placement, int ranks)
    : shape_(shape),
      name_(fmt::format("bench.{}", ::getpid())),
      tool_(findTool("cluster")),
      remoteShell_(findTool("cluster_rsh")),
      log_("tacc_bench_cluster"),
      keeper_(tool({"hold", shape.text()}), log_) {
  place(placement, ranks);
  await();
}

Words VirtualHosts::tool(const Words& arguments) const {
  Words words = {tool_, "--name", name_};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

void VirtualHosts::place(const std::string& placement, int ranks) {
  MemoryFile output("tacc_bench_places");
  const Words command = {"place", "--ranks", std::to_string(ranks), "--place", placement, "--cluster", shape_.text()};
  Process process(tool(command), output);
  process.finish(Clock::now() + hostPatience);
  const std::string text = output.tail(SIZE_MAX);
  std::istringstream numbers(text);
  for (int host = 0; numbers >> host;) hosts_.push_back(host);
  if (hosts_.size() != static_cast<size_t>(ranks)) throw std::runtime_error(text);
}

void VirtualHosts::await() {
  // The keeper's only line of output says that the hosts are there.
  const auto deadline = Clock::now() + hostPatience;
  while (log_.tail(1) != "\n") {
    throwIfInterrupted();
    if (!keeper_.isRunning() || Clock::now() > deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (!keeper_.isRunning()) throw std::runtime_error(log_.tail(shownLogBytes));
}

std::vector<std::string> VirtualHosts::names() const {
  std::vector<std::string> names;
  for (const int host : hosts_) names.push_back(shape_.hosts().at(static_cast<size_t>(host - 1)).name);
  return names;
}

Words VirtualHosts::enter(int rank, const Words& command) const {
  Words words = tool({"exec", std::to_string(hosts_.at(static_cast<size_t>(rank)))});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace tacc::tools
