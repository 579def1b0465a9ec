// Messages between hosts through functions that the program brings (tacc/transport.h): its MPI, for example. It cannot
// sleep.
#include <utility>

#include "core/error.hpp"
#include "tacc/transport.h"
#include "transports/transport_functions.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t leastMaxTag = 32767;

struct Transfer {
  NetworkRequest* request = nullptr;
  void* handle = nullptr;  // the plugin's
  int peer = 0;
  std::uint32_t tag = 0;
  std::size_t capacity = 0;
  bool isSend = false;
};

class PluginTransport final : public NetworkTransport {
 public:
  explicit PluginTransport(const NetworkOptions& options) : rank_(options.rank), plugin_(*options.plugin) {}
  ~PluginTransport() override;

  /// The plugin knows the ranks by their numbers.
  std::vector<std::byte> address() const override { return std::vector<std::byte>(1); }
  void setPeers(std::vector<std::vector<std::byte>>) override {}
  void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) override;
  void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) override;
  bool progress() override;
  int descriptor() const override { return -1; }
  bool arm() override { return false; }
  void cancelReceives() noexcept override;
  std::string describe() const override { return fmt::format("{}, which the program brought", plugin_.name); }

 private:
  /// Fewer tags than the interface has are enough: those of one pair are used in turn, and never all at once.
  std::uint32_t shorten(std::uint32_t tag) const {
    return static_cast<std::uint32_t>(tag % (std::uint64_t{plugin_.maxTag} + 1));
  }
  void started(taccResult_t result, const Transfer& transfer);
  [[noreturn]] void failed(taccResult_t result, const Transfer& transfer) const;

  int rank_;
  taccTransport_t plugin_;
  std::vector<Transfer> transfers_;  // those under way
};

PluginTransport::~PluginTransport() {
  for (Transfer& transfer : transfers_) plugin_.cancel(plugin_.context, &transfer.handle);
  if (plugin_.destroy != nullptr) plugin_.destroy(plugin_.context);
}

void PluginTransport::cancelReceives() noexcept {
  std::erase_if(transfers_, [this](Transfer& transfer) {
    return !transfer.isSend && plugin_.cancel(plugin_.context, &transfer.handle) == taccSuccess;
  });
}

void PluginTransport::send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) {
  Transfer transfer{&request, nullptr, peer, tag, bytes, true};
  request.done = false;
  started(plugin_.send(plugin_.context, peer, shorten(tag), data, bytes, &transfer.handle), transfer);
}

void PluginTransport::receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) {
  Transfer transfer{&request, nullptr, peer, tag, capacity, false};
  request.done = false;
  started(plugin_.receive(plugin_.context, peer, shorten(tag), data, capacity, &transfer.handle), transfer);
}

void PluginTransport::started(taccResult_t result, const Transfer& transfer) {
  if (result != taccSuccess) failed(result, transfer);
  transfers_.push_back(transfer);
}

bool PluginTransport::progress() {
  bool moved = false;
  for (std::size_t i = 0; i < transfers_.size();) {
    Transfer& transfer = transfers_[i];
    int done = 0;
    std::size_t bytes = 0;
    const taccResult_t result = plugin_.test(plugin_.context, &transfer.handle, &done, &bytes);
    if (result == taccSuccess && done == 0) {
      ++i;
      continue;
    }
    const Transfer ended = std::exchange(transfer, transfers_.back());
    transfers_.pop_back();
    if (result != taccSuccess) failed(result, ended);
    if (!ended.isSend) ended.request->bytes = bytes;
    ended.request->done = true;
    moved = true;
  }
  return moved;
}

void PluginTransport::failed(taccResult_t result, const Transfer& transfer) const {
  if (result == taccInvalidUsage && !transfer.isSend) {
    fail(taccInvalidUsage, "rank {} expected at most {} bytes from rank {}, which sent more (message {})", rank_,
         transfer.capacity, transfer.peer, transfer.tag);
  }
  fail(result == taccSystemError ? taccSystemError : taccRemoteError,
       "rank {} has lost rank {}: {} of {} bytes through {} failed; its process may have died, or the network between "
       "them",
       rank_, transfer.peer, transfer.isSend ? "a message" : "the receipt", transfer.capacity, plugin_.name);
}

}  // namespace

std::unique_ptr<NetworkTransport> makeMpiTransport(const NetworkOptions& options) {
  const taccTransport_t* plugin = options.plugin;
  if (plugin == nullptr) {
    fail(taccInvalidUsage,
         "rank {}: messages between hosts were to go through the program's MPI, but the program gave tacc none; set "
         "TACC_TRANSPORT to auto, ucx or ofi",
         options.rank);
  }
  if (plugin->size != sizeof(taccTransport_t) || plugin->version != TACC_TRANSPORT_VERSION) {
    fail(taccInvalidArgument,
         "rank {}: the program's taccTransport_t has version {} and {} bytes; this library takes version {} with {}: "
         "compile the program with this library's tacc/transport.h",
         options.rank, plugin->version, plugin->size, TACC_TRANSPORT_VERSION, sizeof(taccTransport_t));
  }
  if (plugin->name == nullptr || plugin->send == nullptr || plugin->receive == nullptr || plugin->test == nullptr ||
      plugin->cancel == nullptr || plugin->maxTag < leastMaxTag) {
    fail(taccInvalidArgument,
         "rank {}: the program's taccTransport_t lacks a function or its name, or its maxTag {} is below {}",
         options.rank, plugin->maxTag, leastMaxTag);
  }
  return std::make_unique<PluginTransport>(options);
}

std::string describeMpi() { return "brought by the program that uses tacc"; }

}  // namespace tacc
