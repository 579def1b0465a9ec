#include "transports/ucx/ucx_context.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "transports/interfaces.hpp"

namespace tacc {
namespace {

bool isSetByUser(const char* variable) { return std::getenv(variable) != nullptr; }

/// A setting in tacc's favour. ucp_config_modify takes the names of transports' settings without the transport's.
struct Setting {
  const char* variable;  // the user's way to set it
  const char* name;
  const char* value;
};

constexpr Setting settings[] = {
    // What is on this host, tacc does itself. UCX tells hosts apart by their boot id, which containers share.
    {"UCX_TLS", "TLS", "^sm"},
};

// A message of a collective, at most 256 KiB, is one piece over TCP and sent at once, without asking the receiver for a
// place. A receiver must have room for the longest piece of any sender. With UCX's own, 8K for the sender, 64 KiB take
// 1.4 times as long.
constexpr Setting receiverSegment = {"UCX_TCP_RX_SEG_SIZE", "RX_SEG_SIZE", "260K"};
constexpr Setting senderSegment = {"UCX_TCP_TX_SEG_SIZE", "TX_SEG_SIZE", "260K"};

// UCX 1.13 ends the process (an assertion in its completion of zero-copy sends) when a peer dies while it sends to it
// over TCP without a copy, or by rendezvous (tcp_ep.c:939). A copy costs about a third more processor time for large
// messages; a rank of a job that has lost another must be able to say so.
//
// While connections are made, the death of a peer ends the process in two more ways. A connection that one event of a
// look at the sockets has closed is taken up again by a later event of the same look (tcp_iface.c:307), so a look takes
// one event. And a connection that breaks inside ucp_ep_create is closed twice (tcp_ep.c:478), so the kernel connects
// in the background, and the first bytes are sent later.
//
// A second connection to a peer, over another network, is for rendezvous alone. Where a peer has left, the end of the
// idle connection may be seen first, and UCX then drops what still lies in the other.
constexpr Setting tcpOnly[] = {
    {"UCX_ZCOPY_THRESH", "ZCOPY_THRESH", "inf"},   {"UCX_RNDV_THRESH", "RNDV_THRESH", "inf"},
    {"UCX_MAX_RNDV_LANES", "MAX_RNDV_LANES", "1"}, {"UCX_TCP_MAX_POLL", "MAX_POLL", "1"},
    {"UCX_TCP_CONN_NB", "CONN_NB", "y"},
};

bool hasInfiniBand() {
  std::error_code none;
  return std::filesystem::exists("/sys/class/infiniband", none);
}

class Configuration {
 public:
  Configuration() {
    const ucs_status_t status = ucx().configRead(nullptr, nullptr, &config_);
    if (status != UCS_OK) {
      fail(taccSystemError, "UCX cannot read its configuration: {}; look at the variables UCX_* of this process",
           ucx().statusString(status));
    }
  }
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;
  ~Configuration() { ucx().configRelease(config_); }

  void set(const Setting& setting) {
    if (isSetByUser(setting.variable)) return;
    const ucs_status_t status = ucx().configModify(config_, setting.name, setting.value);
    if (status != UCS_OK) {
      fail(taccInternalError, "UCX {} does not take {}={}: {}", ucxVersion(), setting.variable, setting.value,
           ucx().statusString(status));
    }
  }

  const ucp_config_t* get() const noexcept { return config_; }

 private:
  ucp_config_t* config_ = nullptr;
};

}  // namespace

UcxContext::UcxContext(const NetworkOptions& options) : hasFabric_(hasInfiniBand()) {
  // UCX warns on standard output, which belongs to the program: of connections that close, for one, at every error of
  // another rank. What is wrong for tacc is thrown.
  if (!isSetByUser("UCX_LOG_LEVEL")) ucx().globalOptsSetValue("LOG_LEVEL", logs(LogLevel::warn) ? "warn" : "fatal");
  Configuration configuration;
  for (const Setting& setting : settings) configuration.set(setting);
  if (!isSetByUser(receiverSegment.variable) && !isSetByUser(senderSegment.variable)) {
    configuration.set(receiverSegment);
    configuration.set(senderSegment);
  }
  if (!hasFabric_)
    for (const Setting& setting : tcpOnly) configuration.set(setting);
  const std::string interface = firstInterface(options.interfaces);
  if (!interface.empty()) configuration.set({"UCX_NET_DEVICES", "NET_DEVICES", interface.c_str()});

  ucp_params_t parameters = {};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  parameters.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  parameters.estimated_num_eps = static_cast<std::size_t>(options.ranks);
  parameters.name = "tacc";
  const ucs_status_t status =
      ucx().initVersion(UCP_API_MAJOR, UCP_API_MINOR, &parameters, configuration.get(), &context_);
  const bool started = status == UCS_OK;
  if (started && !devices().empty()) return;
  if (started) ucx().cleanup(context_);
  const char* const devices = std::getenv("UCX_NET_DEVICES");
  const std::string on = devices != nullptr  ? fmt::format(" on UCX_NET_DEVICES={}", devices)
                         : interface.empty() ? std::string()
                                             : fmt::format(" on network interface {}", interface);
  fail(taccSystemError, "rank {}: UCX cannot start{}: {}; ucx_info -d shows the devices that UCX finds here",
       options.rank, on, started ? "it finds no such device" : ucx().statusString(status));
}

std::size_t UcxContext::requestBytes() const {
  ucp_context_attr_t attributes = {};
  attributes.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
  ucx().contextQuery(context_, &attributes);
  return attributes.request_size;
}

std::string UcxContext::devices() const {
  // UCX prints its resources, and has no other interface to them: "# resource 1 : md 1 dev 1 flags -- tcp/eth0"
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* stream = ::open_memstream(&text, &bytes);
  if (stream == nullptr) failErrno("cannot make a stream in memory");
  ucx().contextPrintInfo(context_, stream);
  std::fclose(stream);
  std::istringstream lines(std::string(text, bytes));
  std::free(text);

  std::map<std::string, std::string> devicesOfTransport;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("resource") == std::string::npos) continue;
    const std::string name = line.substr(line.find_last_of(' ') + 1);
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos || name.starts_with("self/")) continue;
    std::string& devices = devicesOfTransport[name.substr(0, slash)];
    devices += (devices.empty() ? "" : ", ") + name.substr(slash + 1);
  }
  std::string result;
  for (const auto& [transport, devices] : devicesOfTransport)
    result += fmt::format("{}{} on {}", result.empty() ? "" : "; ", transport, devices);
  return result;
}

std::string ucxVersion() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucx().getVersion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace tacc
