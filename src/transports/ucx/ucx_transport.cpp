// Messages between hosts through UCX: tag matching over InfiniBand, RoCE and TCP.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "transports/pair_marks.hpp"
#include "transports/transport_functions.hpp"
#include "transports/ucx/ucx_context.hpp"
#include "transports/ucx/ucx_drain.hpp"

namespace tacc {
namespace {

/// How long the destructor goes on for messages that are done for their sender but not yet with the kernel, and then
/// for the connections to close. Both take microseconds, unless the peer has stopped reading.
constexpr std::chrono::milliseconds closingTime{500};
constexpr std::size_t operationsAtOnce = 64;
constexpr std::size_t lineOfCache = 64;
/// In front of the worker's address: whether it has a fabric, and the nonce.
constexpr std::size_t addressFront = 1 + sizeof(Nonce);
constexpr ucp_tag_t wholeTag = ~ucp_tag_t{0};

/// In the worker, all messages to a rank share one matching space: the upper half of a tag is the sender's.
constexpr int senderBits = 32;
ucp_tag_t tagOf(std::uint64_t sender, std::uint32_t tag) { return sender << senderBits | tag; }

class UcxTransport;

/// What UCX and the transport keep about a message under way. UCX's part lies right in front of it, in memory of the
/// transport: so nothing is allocated for a message, and everything that is under way can be found.
struct UcxTransfer {
  UcxTransport* transport = nullptr;
  NetworkRequest* request = nullptr;  // null: free
  int peer = 0;
  std::uint32_t tag = 0;
  std::size_t capacity = 0;  // of a receive
};

struct Peer {
  std::vector<std::byte> address;  // of its worker
  bool hasFabric = false;
  ucp_ep_h endpoint = nullptr;
  int underWay = 0;  // messages
  ucs_status_t status = UCS_OK;
  UcxTransport* transport = nullptr;
};

class UcxTransport final : public NetworkTransport {
 public:
  explicit UcxTransport(const NetworkOptions& options);
  ~UcxTransport() override;

  std::vector<std::byte> address() const override;
  void setPeers(std::vector<std::vector<std::byte>> addresses) override;
  void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) override;
  void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) override;
  bool progress() override;
  bool drain() override { return drain_.isDone(); }
  int descriptor() const override { return descriptor_; }
  bool arm() override;
  /// What goes at once: over TCP a peer's death in a message by rendezvous may end the process
  /// (docs/understand/transports.md).
  std::size_t pieceBytes() const override { return std::size_t{256} << 10; }
  bool hasFabric() const override { return context_.devices().find("tcp on ") != 0; }
  std::string describe() const override { return fmt::format("ucx {} over {}", ucxVersion(), context_.devices()); }

 private:
  static void onSent(void* transfer, ucs_status_t status, void* userData);
  static void onReceived(void* transfer, ucs_status_t status, const ucp_tag_recv_info_t* info, void* userData);
  static void onPeerFailure(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  UcxTransfer& begin(int peer, std::uint32_t tag, std::size_t capacity, NetworkRequest& request);
  void end(UcxTransfer& transfer, ucs_status_t status, std::size_t bytes);
  void addOperations();
  ucp_err_handling_mode_t errorModeWith(const Peer& peer) const;
  void connect(int rank);
  void note(taccResult_t result, const std::string& message);
  std::string gone(int rank, ucs_status_t status) const;
  void noteFailedPeers();
  [[noreturn]] void throwError() const { throw Error(*error_); }
  template <class IsDone>
  void progressUntil(const IsDone& isDone) noexcept;

  UcxContext context_;
  int rank_;
  PairMarks marks_;
  std::size_t requestBytes_;  // UCX's part of an transfer, rounded up to cache lines
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::vector<UcxTransfer*> transfers_;
  std::vector<UcxTransfer*> free_;
  std::vector<Peer> peers_;
  bool somePeerFailed_ = false;
  std::optional<Error> error_;  // the first; found in a callback, which must not throw
  ucp_worker_h worker_ = nullptr;
  UcxDrain drain_;
  int descriptor_ = -1;
};

std::size_t wholeLines(std::size_t bytes) { return (bytes + lineOfCache - 1) / lineOfCache * lineOfCache; }

UcxTransport::UcxTransport(const NetworkOptions& options)
    : context_(options),
      rank_(options.rank),
      marks_(options.rank, options.ranks, options.secret, senderBits),
      requestBytes_(wholeLines(context_.requestBytes())) {
  addOperations();
  ucp_worker_params_t parameters = {};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucs_status_t status = ucx().workerCreate(context_.get(), &parameters, &worker_);
  if (status != UCS_OK)
    fail(taccSystemError, "rank {}: UCX cannot make a worker: {}", rank_, ucx().statusString(status));
  status = ucx().workerGetEfd(worker_, &descriptor_);
  if (status == UCS_OK) status = drain_.start(worker_);
  if (status != UCS_OK) {
    ucx().workerDestroy(worker_);
    fail(taccSystemError, "rank {}: UCX has no descriptor to sleep on, or no active messages: {}", rank_,
         ucx().statusString(status));
  }
}

UcxTransport::~UcxTransport() {
  // A caller that left messages under way may have taken their requests along, and their memory. Sends are not
  // cancelled: while there are some nothing may move.
  NetworkRequest nobodys;
  for (UcxTransfer* transfer : transfers_) {
    if (transfer->request == nullptr) continue;
    transfer->request = &nobodys;
    ucx().requestCancel(worker_, transfer);
  }
  const bool isLeft = std::any_of(transfers_.begin(), transfers_.end(),
                                  [](const UcxTransfer* transfer) { return transfer->request != nullptr; });
  if (isLeft) {
    ucx().workerDestroy(worker_);
    return;
  }

  const ucp_request_param_t none = {};
  std::vector<ucs_status_ptr_t> requests;
  const auto keep = [&](ucs_status_ptr_t request) {
    if (UCS_PTR_IS_PTR(request)) requests.push_back(request);
  };
  const auto waitForAll = [&] {
    progressUntil([&] {
      return std::all_of(requests.begin(), requests.end(),
                         [](ucs_status_ptr_t request) { return ucx().requestCheckStatus(request) != UCS_INPROGRESS; });
    });
    for (ucs_status_ptr_t request : requests) ucx().requestFree(request);
    requests.clear();
  };
  keep(drain_.release());
  // A send is done when UCX has a copy. The rank that waits for that message still wants it.
  if (!error_ && !somePeerFailed_) keep(ucx().workerFlushNbx(worker_, &none));
  waitForAll();
  ucp_request_param_t force = {};
  force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  force.flags = UCP_EP_CLOSE_FLAG_FORCE;
  for (Peer& peer : peers_)
    if (peer.endpoint != nullptr && errorModeWith(peer) == UCP_ERR_HANDLING_MODE_PEER)
      keep(ucx().epCloseNbx(std::exchange(peer.endpoint, nullptr), &force));  // the others go with the worker
  waitForAll();
  ucx().workerDestroy(worker_);  // the operations' memory goes after it
}

template <class IsDone>
void UcxTransport::progressUntil(const IsDone& isDone) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + closingTime;
  while (!isDone() && std::chrono::steady_clock::now() < deadline) ucx().workerProgress(worker_);
}

std::vector<std::byte> UcxTransport::address() const {
  ucp_worker_attr_t attributes = {};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
  attributes.address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY;
  const ucs_status_t status = ucx().workerQuery(worker_, &attributes);
  if (status != UCS_OK) fail(taccSystemError, "rank {}: UCX has no address: {}", rank_, ucx().statusString(status));
  const auto* bytes = reinterpret_cast<const std::byte*>(attributes.address);
  std::vector<std::byte> result(addressFront + attributes.address_length);
  result.front() = std::byte{context_.hasFabric()};
  std::ranges::copy(bytesOf(marks_.nonce()), result.begin() + 1);
  std::copy_n(bytes, attributes.address_length, result.begin() + addressFront);
  ucx().workerReleaseAddress(worker_, attributes.address);
  return result;
}

void UcxTransport::setPeers(std::vector<std::vector<std::byte>> addresses) {
  peers_.resize(addresses.size());  // and never again: UCX has pointers to them
  drain_.setPeers(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::vector<std::byte>& address = addresses[i];
    if (address.size() <= addressFront) fail(taccRemoteError, "rank {}: rank {} has sent no UCX address", rank_, i);
    peers_[i].hasFabric = address.front() != std::byte{0};
    Nonce nonce;
    std::memcpy(nonce.data(), address.data() + 1, nonce.size());
    marks_.setNonce(static_cast<int>(i), nonce);
    peers_[i].address.assign(address.begin() + addressFront, address.end());
    peers_[i].transport = this;
  }
}

/// How two ranks do is the same for both. Without error handling UCX sends long messages by rendezvous also over TCP,
/// from place to place; with it, 1.13 copies them into segments and out again. Over TCP the death of a peer is told
/// either way, by its connection's end. Over InfiniBand, an error that is not handled ends the process.
ucp_err_handling_mode_t UcxTransport::errorModeWith(const Peer& peer) const {
  return context_.hasFabric() && peer.hasFabric ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
}

/// A receive connects too: only an endpoint of one's own tells that its peer has died.
void UcxTransport::connect(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  ucp_ep_params_t parameters = {};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  parameters.err_mode = errorModeWith(peer);
  parameters.err_handler = {onPeerFailure, &peer};
  const ucs_status_t status = ucx().epCreate(worker_, &parameters, &peer.endpoint);
  if (status != UCS_OK) {
    peer.endpoint = nullptr;
    fail(taccRemoteError,
         "rank {} cannot reach rank {}: {}; UCX has {} here. Ranks on different hosts need a network that joins them",
         rank_, rank, ucx().statusString(status), context_.devices());
  }
}

void UcxTransport::addOperations() {
  const std::size_t bytes = requestBytes_ + wholeLines(sizeof(UcxTransfer));
  chunks_.push_back(std::make_unique<std::byte[]>(bytes * operationsAtOnce + lineOfCache));
  void* start = chunks_.back().get();
  std::size_t space = bytes * operationsAtOnce + lineOfCache;
  std::align(lineOfCache, bytes * operationsAtOnce, start, space);
  for (std::size_t i = 0; i < operationsAtOnce; ++i) {
    auto* place = static_cast<std::byte*>(start) + i * bytes + requestBytes_;
    transfers_.push_back(::new (place) UcxTransfer);
    transfers_.back()->transport = this;
  }
  free_.reserve(transfers_.size());  // end() must not throw
  free_.insert(free_.end(), transfers_.end() - operationsAtOnce, transfers_.end());
}

UcxTransfer& UcxTransport::begin(int peer, std::uint32_t tag, std::size_t capacity, NetworkRequest& request) {
  if (error_) throwError();
  Peer& entry = peers_[static_cast<std::size_t>(peer)];
  if (entry.endpoint == nullptr) connect(peer);
  if (free_.empty()) addOperations();
  UcxTransfer& transfer = *free_.back();
  free_.pop_back();
  transfer.request = &request;
  transfer.peer = peer;
  transfer.tag = tag;
  transfer.capacity = capacity;
  request.done = false;
  ++entry.underWay;
  return transfer;
}

void UcxTransport::end(UcxTransfer& transfer, ucs_status_t status, std::size_t bytes) {
  NetworkRequest& request = *std::exchange(transfer.request, nullptr);
  --peers_[static_cast<std::size_t>(transfer.peer)].underWay;
  free_.push_back(&transfer);
  if (status == UCS_OK) {
    request.bytes = bytes;
    request.done = true;
  } else if (status == UCS_ERR_MESSAGE_TRUNCATED) {
    note(taccInvalidUsage, fmt::format("rank {} expected at most {} bytes from rank {}, which sent {} (message {})",
                                       rank_, transfer.capacity, transfer.peer, bytes, transfer.tag));
  } else {
    note(taccRemoteError, gone(transfer.peer, status));
  }
}

std::string UcxTransport::gone(int rank, ucs_status_t status) const {
  return fmt::format("rank {} has lost rank {}: {} (ucx); its process may have died, or the network between them",
                     rank_, rank, ucx().statusString(status));
}

void UcxTransport::note(taccResult_t result, const std::string& message) {
  if (!error_) error_.emplace(result, message);
}

void UcxTransport::onSent(void*, ucs_status_t status, void* userData) {
  auto* transfer = static_cast<UcxTransfer*>(userData);
  transfer->transport->end(*transfer, status, 0);
}

void UcxTransport::onReceived(void*, ucs_status_t status, const ucp_tag_recv_info_t* info, void* userData) {
  auto* transfer = static_cast<UcxTransfer*>(userData);
  transfer->transport->end(*transfer, status, info->length);
}

void UcxTransport::onPeerFailure(void* argument, ucp_ep_h, ucs_status_t status) {
  auto* peer = static_cast<Peer*>(argument);
  peer->status = status;
  peer->transport->somePeerFailed_ = true;
}

/// A peer that has left is an error for those who still have messages with it: others may finish.
void UcxTransport::noteFailedPeers() {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].status != UCS_OK && peers_[i].underWay != 0)
      note(taccRemoteError, gone(static_cast<int>(i), peers_[i].status));
  }
}

void UcxTransport::send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) {
  UcxTransfer& transfer = begin(peer, tag, 0, request);
  drain_.add(static_cast<std::size_t>(peer), peers_[static_cast<std::size_t>(peer)].endpoint);
  ucp_request_param_t parameters = {};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                            UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  parameters.request = &transfer;
  parameters.cb.send = onSent;
  parameters.user_data = &transfer;
  parameters.memory_type = UCS_MEMORY_TYPE_HOST;
  const ucs_status_ptr_t result = ucx().tagSendNbx(peers_[static_cast<std::size_t>(peer)].endpoint, data, bytes,
                                                   tagOf(marks_.sending(peer), tag), &parameters);
  if (!UCS_PTR_IS_PTR(result)) end(transfer, UCS_PTR_STATUS(result), 0);
  if (error_) throwError();
}

void UcxTransport::receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) {
  UcxTransfer& transfer = begin(peer, tag, capacity, request);
  ucp_request_param_t parameters = {};
  // Always with the callback, inside this call too: it alone is told the length for certain. UCX 1.13 leaves out the
  // info of a receive that is done at once.
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                            UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  parameters.request = &transfer;
  parameters.cb.recv = onReceived;
  parameters.user_data = &transfer;
  parameters.memory_type = UCS_MEMORY_TYPE_HOST;
  const ucs_status_ptr_t result =
      ucx().tagRecvNbx(worker_, data, capacity, tagOf(marks_.receiving(peer), tag), wholeTag, &parameters);
  if (UCS_PTR_IS_ERR(result)) end(transfer, UCS_PTR_STATUS(result), 0);
  if (error_) throwError();
}

bool UcxTransport::progress() {
  const bool moved = ucx().workerProgress(worker_) != 0;
  if (somePeerFailed_) noteFailedPeers();
  if (error_) throwError();
  return moved;
}

bool UcxTransport::arm() {
  const ucs_status_t status = ucx().workerArm(worker_);
  if (status != UCS_OK && status != UCS_ERR_BUSY)
    fail(taccSystemError, "rank {}: UCX cannot prepare for sleeping: {}", rank_, ucx().statusString(status));
  return status == UCS_OK;
}

}  // namespace

std::unique_ptr<NetworkTransport> makeUcxTransport(const NetworkOptions& options) {
  return std::make_unique<UcxTransport>(options);
}

std::string describeUcx() {
  try {
    return fmt::format("ucx {}: {}", ucxVersion(), UcxContext({}).devices());
  } catch (const Error& error) {
    return fmt::format("ucx {} cannot be used: {}", ucxVersion(), error.what());
  }
}

}  // namespace tacc
