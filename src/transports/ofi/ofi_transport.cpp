// Messages between hosts through libfabric (OFI): tagged messages of reliable datagram endpoints.
#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "transports/ofi/ofi_provider.hpp"
#include "transports/pair_marks.hpp"
#include "transports/transport_functions.hpp"

namespace tacc {
namespace {

constexpr std::size_t completionsAtOnce = 16;
constexpr std::size_t longestAddress = 512;
/// How long the destructor waits for what it cancelled.
constexpr std::chrono::milliseconds ofiClosingTime{500};

struct Closer {
  template <class Object>
  void operator()(Object* object) const noexcept {
    fi_close(&object->fid);
  }
};
template <class Object>
using Owned = std::unique_ptr<Object, Closer>;

/// A message under way. libfabric has a pointer to it, and writes to its first member.
struct OfiTransfer {
  fi_context2 context;
  NetworkRequest* request = nullptr;  // null: free
  bool isSend = false;
  bool isPosted = false;
  int peer = 0;
  std::uint32_t tag = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
  Owned<fid_mr> registration;
};

class OfiTransport final : public NetworkTransport {
 public:
  explicit OfiTransport(const NetworkOptions& options);
  ~OfiTransport() override;

  std::vector<std::byte> address() const override;
  void setPeers(std::vector<std::vector<std::byte>> addresses) override;
  void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) override {
    start(true, peer, tag, const_cast<void*>(data), bytes, request);
  }
  void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) override {
    start(false, peer, tag, data, capacity, request);
  }
  bool progress() override;
  int descriptor() const override { return descriptor_; }
  bool arm() override;
  bool hasFabric() const override { return !goesOverTcp(*info_); }
  std::string describe() const override { return fmt::format("libfabric {} {}", ofiVersion(), providerNameOf(*info_)); }

 private:
  void start(bool isSend, int peer, std::uint32_t tag, void* data, std::size_t bytes, NetworkRequest& request);
  bool post(OfiTransfer& transfer);
  void recycle(OfiTransfer& transfer);
  bool readCompletions();
  bool takeSignalBack();
  bool isQuiet();
  void deliver(const fi_cq_tagged_entry* entries, ssize_t count);
  void readError();
  std::uint64_t wireTag(std::uint64_t sender, std::uint32_t tag) const;
  void check(int result, const char* what) const;

  int rank_;
  OfiInfo info_;
  int tagBits_;  // below the sender's field; 32 unless the provider's tags are short
  PairMarks marks_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> completions_;
  Owned<fid_cq> bell_;  // where it is slept on a queue of its own, which stays empty
  Owned<fid_av> addresses_;
  std::vector<fi_addr_t> peers_;
  std::deque<OfiTransfer> transfers_;  // places stay
  std::vector<OfiTransfer*> free_;
  std::vector<OfiTransfer*> waiting_;  // the provider had no room for them; tried again in progress()
  Owned<fid_ep> endpoint_;             // closed first
  int descriptor_ = -1;
};

int bitsOfTags(const fi_info& info) { return static_cast<int>(std::bit_width(info.ep_attr->mem_tag_format)); }

int chooseTagBits(const fi_info& info, int ranks) {
  return std::min(32, bitsOfTags(info) - static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))));
}

/// `net` of libfabric 1.17 signals the descriptor of a queue with each completion, which takes two system calls and
/// three more to take it back. But all queues of a domain look after the same connections: the descriptor of one that
/// no endpoint uses is readable when something comes, and is never signalled.
bool hasBell(const fi_info& info) { return std::string_view(info.fabric_attr->prov_name) == "net"; }

void OfiTransport::check(int result, const char* what) const {
  if (result == 0) return;
  fail(taccSystemError, "rank {}: libfabric {} cannot {}: {}", rank_, providerNameOf(*info_), what,
       ofi().strerror(-result));
}

OfiTransport::OfiTransport(const NetworkOptions& options)
    : rank_(options.rank),
      info_(chooseOfiProvider(options)),
      tagBits_(chooseTagBits(*info_, options.ranks)),
      marks_(options.rank, options.ranks, options.secret, bitsOfTags(*info_) - tagBits_) {
  fid_fabric* fabric = nullptr;
  check(ofi().fabric(info_->fabric_attr, &fabric, nullptr), "open the fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, info_.get(), &domain, nullptr), "open the domain");
  domain_.reset(domain);

  fi_cq_attr queueAttributes = {};
  queueAttributes.format = FI_CQ_FORMAT_TAGGED;
  queueAttributes.wait_obj = FI_WAIT_FD;
  fid_cq* sleeping = nullptr;  // the queue to sleep on; not every provider has one
  if (fi_cq_open(domain, &queueAttributes, &sleeping, nullptr) != 0) sleeping = nullptr;
  fid_cq* completions = sleeping;
  if (sleeping == nullptr || hasBell(*info_)) {
    bell_.reset(sleeping);
    queueAttributes.wait_obj = FI_WAIT_NONE;
    check(fi_cq_open(domain, &queueAttributes, &completions, nullptr), "make a completion queue");
  }
  completions_.reset(completions);
  if (sleeping != nullptr) check(fi_control(&sleeping->fid, FI_GETWAIT, &descriptor_), "tell what to sleep on");

  fi_av_attr tableAttributes = {};
  tableAttributes.type = FI_AV_TABLE;
  tableAttributes.count = static_cast<std::size_t>(options.ranks);
  fid_av* addresses = nullptr;
  check(fi_av_open(domain, &tableAttributes, &addresses, nullptr), "make an address table");
  addresses_.reset(addresses);

  fid_ep* endpoint = nullptr;
  check(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "make an endpoint");
  endpoint_.reset(endpoint);
  check(fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV), "bind its completion queue");
  check(fi_ep_bind(endpoint, &addresses->fid, 0), "bind its address table");
  check(fi_enable(endpoint), "enable its endpoint");
}

OfiTransport::~OfiTransport() {
  bool someLeft = false;
  NetworkRequest nobodys;  // a caller that left messages under way may have taken their requests along
  for (OfiTransfer& transfer : transfers_) {
    if (transfer.request == nullptr) continue;
    transfer.request = &nobodys;
    if (!transfer.isPosted) continue;
    fi_cancel(&endpoint_->fid, &transfer.context);
    someLeft = true;
  }
  waiting_.clear();
  const auto deadline = std::chrono::steady_clock::now() + ofiClosingTime;
  while (someLeft && std::chrono::steady_clock::now() < deadline) {
    try {
      readCompletions();
    } catch (const Error&) {  // each that was cancelled is one
    }
    someLeft = std::any_of(transfers_.begin(), transfers_.end(), [](const OfiTransfer& transfer) {
      return transfer.request != nullptr && transfer.isPosted && !transfer.isSend;
    });
  }
  endpoint_.reset();  // from here on nothing is touched
}

std::vector<std::byte> OfiTransport::address() const {
  // In front stands the provider, so that ranks which chose differently find out; behind it the nonce.
  const auto nonce = bytesOf(marks_.nonce());
  std::vector<std::byte> result(longestAddress);
  const std::size_t prefix = std::strlen(info_->fabric_attr->prov_name) + 1;
  if (prefix < longestAddress / 2) std::memcpy(result.data(), info_->fabric_attr->prov_name, prefix);
  std::size_t bytes = result.size() - prefix;
  check(fi_getname(&endpoint_->fid, result.data() + prefix, &bytes), "tell its address");
  result.resize(prefix + bytes);
  result.insert(result.end(), nonce.begin(), nonce.end());
  return result;
}

void OfiTransport::setPeers(std::vector<std::vector<std::byte>> addresses) {
  const std::string own = info_->fabric_attr->prov_name;
  for (std::size_t peer = 0; peer < addresses.size(); ++peer) {
    const std::vector<std::byte>& address = addresses[peer];
    const char* text = reinterpret_cast<const char*>(address.data());
    const std::string provider(text, ::strnlen(text, address.size()));
    if (provider != own) {
      fail(taccInvalidUsage,
           "rank {} uses libfabric's provider {} and rank {} uses {}; set FI_PROVIDER to one that all hosts have",
           rank_, own, peer, provider);
    }
    Nonce nonce;
    if (address.size() < own.size() + 1 + sizeof nonce)
      fail(taccRemoteError, "rank {}: rank {} has sent no libfabric address", rank_, peer);
    std::memcpy(nonce.data(), address.data() + address.size() - sizeof nonce, sizeof nonce);
    marks_.setNonce(static_cast<int>(peer), nonce);
    fi_addr_t place = FI_ADDR_UNSPEC;
    if (fi_av_insert(addresses_.get(), address.data() + own.size() + 1, 1, &place, 0, nullptr) != 1)
      fail(taccSystemError, "rank {}: libfabric {} does not take the address of rank {}", rank_, providerNameOf(*info_),
           peer);
    peers_.push_back(place);
  }
}

std::uint64_t OfiTransport::wireTag(std::uint64_t sender, std::uint32_t tag) const {
  const std::uint64_t mask = (std::uint64_t{1} << tagBits_) - 1;
  return sender << tagBits_ | (tag & mask);
}

void OfiTransport::start(bool isSend, int peer, std::uint32_t tag, void* data, std::size_t bytes,
                         NetworkRequest& request) {
  if (free_.empty()) {
    free_.push_back(&transfers_.emplace_back());
    free_.reserve(transfers_.size());  // recycle() must not allocate
  }
  OfiTransfer& transfer = *free_.back();
  free_.pop_back();
  transfer.request = &request;
  transfer.isSend = isSend;
  transfer.isPosted = false;
  transfer.peer = peer;
  transfer.tag = tag;
  transfer.data = data;
  transfer.bytes = bytes;
  request.done = false;
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0 && bytes != 0) {
    // For one message: libfabric itself keeps registrations, and knows when memory has been unmapped, which tacc does
    // not.
    fid_mr* registration = nullptr;
    check(fi_mr_reg(domain_.get(), data, bytes, isSend ? FI_SEND : FI_RECV, 0, 0, 0, &registration, nullptr),
          "register memory (if it is locked memory that is short, raise ulimit -l)");
    transfer.registration.reset(registration);
  }
  if (!post(transfer)) waiting_.push_back(&transfer);
}

/// False: no room now. Throws what makes the peer unreachable.
bool OfiTransport::post(OfiTransfer& transfer) {
  void* descriptor = transfer.registration ? fi_mr_desc(transfer.registration.get()) : nullptr;
  const fi_addr_t peer = peers_[static_cast<std::size_t>(transfer.peer)];
  const ssize_t result = transfer.isSend
                             ? fi_tsend(endpoint_.get(), transfer.data, transfer.bytes, descriptor, peer,
                                        wireTag(marks_.sending(transfer.peer), transfer.tag), &transfer.context)
                             : fi_trecv(endpoint_.get(), transfer.data, transfer.bytes, descriptor, FI_ADDR_UNSPEC,
                                        wireTag(marks_.receiving(transfer.peer), transfer.tag), 0, &transfer.context);
  if (result == -FI_EAGAIN) return false;
  if (result != 0) {
    fail(taccRemoteError, "rank {} cannot reach rank {}: {} (libfabric {})", rank_, transfer.peer,
         ofi().strerror(static_cast<int>(-result)), providerNameOf(*info_));
  }
  transfer.isPosted = true;
  return true;
}

void OfiTransport::recycle(OfiTransfer& transfer) {
  transfer.registration.reset();
  transfer.request = nullptr;
  free_.push_back(&transfer);
}

bool OfiTransport::progress() {
  const bool moved = readCompletions();
  if (waiting_.empty()) return moved;
  const std::size_t before = waiting_.size();
  std::erase_if(waiting_, [this](OfiTransfer* transfer) { return post(*transfer); });
  return moved || waiting_.size() != before;
}

bool OfiTransport::readCompletions() {
  fi_cq_tagged_entry entries[completionsAtOnce];
  const ssize_t count = fi_cq_read(completions_.get(), entries, completionsAtOnce);
  if (count == -FI_EAGAIN) return false;
  deliver(entries, count);
  return count > 0;
}

/// `count`: as the queue returned it, an error too.
void OfiTransport::deliver(const fi_cq_tagged_entry* entries, ssize_t count) {
  if (count == -FI_EAVAIL) readError();
  if (count < 0) check(static_cast<int>(count), "read its completion queue");
  for (ssize_t i = 0; i < count; ++i) {
    auto& transfer = *static_cast<OfiTransfer*>(entries[i].op_context);
    if (!transfer.isSend) transfer.request->bytes = entries[i].len;
    transfer.request->done = true;
    recycle(transfer);
  }
}

void OfiTransport::readError() {
  fi_cq_err_entry entry = {};
  fi_cq_readerr(completions_.get(), &entry, 0);
  char text[128] = {};
  fi_cq_strerror(completions_.get(), entry.prov_errno, entry.err_data, text, sizeof text);
  if (entry.op_context == nullptr) {
    fail(taccRemoteError, "rank {}: libfabric {} failed: {} ({})", rank_, providerNameOf(*info_),
         ofi().strerror(entry.err), static_cast<const char*>(text));
  }
  auto& transfer = *static_cast<OfiTransfer*>(entry.op_context);
  const int peer = transfer.peer;
  const std::size_t capacity = transfer.bytes;
  const std::uint32_t tag = transfer.tag;
  // By the manual `len` is what was received and `olen` what did not fit. ofi_rxm tells the whole, or nothing.
  const std::size_t bytes = entry.len > capacity ? entry.len : entry.len + entry.olen;
  const std::string sent = bytes > capacity ? std::to_string(bytes) : std::string("more");
  recycle(transfer);
  if (entry.err == FI_ETRUNC) {
    fail(taccInvalidUsage, "rank {} expected at most {} bytes from rank {}, which sent {} (message {})", rank_,
         capacity, peer, sent, tag);
  }
  fail(taccRemoteError,
       "rank {} has lost rank {}: {} ({}; libfabric {}); its process may have died, or the network between them", rank_,
       peer, ofi().strerror(entry.err), static_cast<const char*>(text), providerNameOf(*info_));
}

bool OfiTransport::arm() {
  if (!waiting_.empty()) return false;
  fid* objects[] = {bell_ ? &bell_->fid : &completions_->fid};
  const int result = fi_trywait(fabric_.get(), objects, 1);
  // Besides FI_EAGAIN there is what a connection that has just broken leaves behind in the provider: progress() clears
  // it.
  return result == FI_SUCCESS && (bell_ ? isQuiet() : takeSignalBack());
}

/// False: something has come in the moment before. An error is left to progress(), whose callers know what to make of
/// it.
bool OfiTransport::isQuiet() {
  fi_cq_tagged_entry entries[completionsAtOnce];
  const ssize_t count = fi_cq_read(completions_.get(), entries, completionsAtOnce);
  if (count > 0) deliver(entries, count);
  return count == -FI_EAGAIN;
}

/// False: there was something to take. A provider may signal its descriptor with each completion and take that back
/// only where it waits itself: then a thread that sleeps on the descriptor would not. Lasts 1 ms at most.
bool OfiTransport::takeSignalBack() {
  pollfd signal{descriptor_, POLLIN, 0};
  if (::poll(&signal, 1, 0) <= 0) return true;
  fi_cq_tagged_entry entries[completionsAtOnce];
  const ssize_t count = fi_cq_sread(completions_.get(), entries, completionsAtOnce, nullptr, 1);
  if (count > 0) deliver(entries, count);  // an error is left to progress(), whose callers know what to make of it
  return false;
}

}  // namespace

std::unique_ptr<NetworkTransport> makeOfiTransport(const NetworkOptions& options) {
  return std::make_unique<OfiTransport>(options);
}

std::string describeOfi() {
  try {
    const std::string providers = listOfiProviders();
    return fmt::format("libfabric {}: {}", ofiVersion(),
                       providers.empty() ? "no provider that reaches other hosts" : providers);
  } catch (const Error& error) {
    return fmt::format("libfabric {} cannot be used: {}", ofiVersion(), error.what());
  }
}

}  // namespace tacc
