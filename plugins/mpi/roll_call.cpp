#include "roll_call.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "roll_call_pmix.hpp"

namespace tacc::mpi {
namespace {

constexpr int patience = 5000;  // milliseconds for an answer: the process manager on this host gives it at once
constexpr std::size_t longestLine = 4096;

/// -1 where it is no number.
int numberOf(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return -1;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return *end == '\0' && value >= 0 && value < 1 << 24 ? static_cast<int>(value) : -1;
}

/// The store as PMI-1 speaks with it: a line for a line, over a socket that the MPI uses as well, so nothing is read of
/// it beyond the answer.
class Store {
 public:
  /// Begins a conversation. Nothing where there is none.
  static std::optional<Store> open() {
    Store store(numberOf("PMI_FD"));
    if (store.socket_ < 0 || !store.ask("cmd=init pmi_version=1 pmi_subversion=1")) return std::nullopt;
    const std::optional<std::string> answer = store.ask("cmd=get_my_kvsname");
    constexpr std::string_view before = "kvsname=";
    const std::size_t at = answer ? answer->find(before) : std::string::npos;
    if (at == std::string::npos) return std::nullopt;
    store.name_ = answer->substr(at + before.size());
    store.name_.resize(std::min(store.name_.find(' '), store.name_.size()));
    return store;
  }

  bool put(const std::string& key) {
    const auto answer = ask("cmd=put kvsname=" + name_ + " key=" + key + " value=1");
    return answer && answer->find("rc=0") != std::string::npos;
  }

  /// Whether the key is there; nothing where the store does not say.
  std::optional<bool> has(const std::string& key) {
    const auto answer = ask("cmd=get kvsname=" + name_ + " key=" + key);
    if (!answer || !answer->starts_with("cmd=get_result")) return std::nullopt;
    return answer->find(" rc=0") != std::string::npos;
  }

 private:
  explicit Store(int socket) : socket_(socket) {}

  std::optional<std::string> ask(const std::string& question) {
    const std::string line = question + '\n';
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t sent = ::write(socket_, rest.data(), rest.size());
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return std::nullopt;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    std::string answer;
    while (answer.size() < longestLine) {
      pollfd waiting{socket_, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, patience);
      if (ready < 0 && errno == EINTR) continue;
      char byte = 0;
      if (ready <= 0 || ::read(socket_, &byte, 1) != 1) return std::nullopt;
      if (byte == '\n') return answer;
      answer += byte;
    }
    return std::nullopt;
  }

  int socket_;
  std::string name_;
};

std::string keyOf(int rank) { return "tacc-preload-" + std::to_string(rank); }

enum class Way { none, pmi, pmix };

/// How this rank has left its word.
Way way = Way::none;

bool isOnSeveralHosts(const char* local, const char* all) {
  return numberOf(local) > 0 && numberOf(local) < numberOf(all);
}

std::vector<int> ranksLacking(int ranks, const std::function<std::optional<bool>(int)>& hasIt) {
  std::vector<int> missing;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::optional<bool> there = hasIt(rank);
    if (!there) return {};
    if (!*there) missing.push_back(rank);
  }
  return missing;
}

}  // namespace

void answerRollCall() noexcept {
  if (isOnSeveralHosts("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE")) {
    if (answerByPmix()) way = Way::pmix;
    return;
  }
  const int rank = numberOf("PMI_RANK");
  if (rank < 0 || !isOnSeveralHosts("MPI_LOCALNRANKS", "PMI_SIZE")) return;
  try {
    if (auto store = Store::open(); store && store->put(keyOf(rank))) way = Way::pmi;
  } catch (const std::exception&) {
    // Without memory for a line the roll is not called.
  }
}

std::vector<int> ranksWithoutAnswer() {
  if (way == Way::pmix) return ranksLacking(numberOf("OMPI_COMM_WORLD_SIZE"), hasAnsweredByPmix);
  if (way == Way::none) return {};
  auto store = Store::open();
  if (!store) return {};
  return ranksLacking(numberOf("PMI_SIZE"), [&](int rank) { return store->has(keyOf(rank)); });
}

}  // namespace tacc::mpi
