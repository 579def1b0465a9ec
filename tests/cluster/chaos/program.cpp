#include "chaos/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "chaos/companion.hpp"

namespace tacc::chaos {
namespace {

constexpr std::size_t bufferCount = 1 << 16;  // elements of each buffer
constexpr int callsBetweenLooks = 8;          // at whether to stop
constexpr std::int32_t guard = 0x5a5a5a5a;
/// What ranks say when they look around: the most counts.
constexpr std::int32_t goOn = 0, partHasFailed = 1, stop = 2;

/// Element `index` of what `rank` gives to call `call`.
std::int32_t valueOf(int rank, std::uint32_t call, std::size_t index) {
  return static_cast<std::int32_t>((static_cast<std::size_t>(rank) * 31 + index * 7 + call * 13U) % 1009);
}

class Rank {
 public:
  Rank(const Round& round, Board& board, int self)
      : round_(round), board_(board), seat_(board.seats[self]), self_(self) {
    for (int rank = 0; rank < round.ranks; ++rank) members_.push_back(rank);
    for (auto& buffer : library_) {
      void* memory = nullptr;
      if (taccMemAlloc(&memory, bufferCount * sizeof(std::int32_t)) == taccSuccess)
        buffer = static_cast<std::int32_t*>(memory);
    }
  }
  ~Rank() {
    for (std::int32_t* buffer : library_)
      if (buffer != nullptr) (void)taccMemFree(buffer);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void run(const taccUniqueId& id) {
    taccConfig_t config = TACC_CONFIG_INITIALIZER;
    config.initTimeout = initTimeout * 5;  // nothing is sabotaged yet, and the machine may be busy
    config.operationTimeout = timeout;
    if (taccCommInitRankConfig(&comm_, round_.ranks, id, self_, &config) != taccSuccess)
      return tell(fmt::format("cannot join: {}", taccGetLastError(nullptr)));
    makePart();
    seat_.stage = Stage::calling;
    for (;;) {
      forkIfAsked();
      const bool isGood = makeCall();
      if (isGood && isOver_) break;
      if (!isGood && !recover()) break;
    }
    if (companion_) companion_->end(isOver_);
    companion_.reset();
    seat_.since = 0;
    seat_.stage = Stage::over;
    if (comm_ != nullptr) (void)taccCommDestroy(comm_);
    // Where all processes have ended that went on, whoever comes late cannot tell them from dead ones.
    while (!board_.mayEnd) ::usleep(10'000);
  }

 private:
  void tell(const std::string& what) { tellProblem(board_, round_.number, self_, what); }

  void forkIfAsked() {
    if (!seat_.wantsChild.exchange(false)) return;
    const pid_t child = ::fork();
    if (child == 0)
      for (;;) ::pause();
    seat_.child = child;
  }

  taccConfig_t config() const {
    taccConfig_t config = TACC_CONFIG_INITIALIZER;
    config.initTimeout = initTimeout;
    config.operationTimeout = timeout;
    return config;
  }

  /// All have one, or none has; the next call fails where the whole has failed.
  void makePart() {
    companion_.reset();
    if (!round_.hasParts) return;
    const double start = now();
    const taccConfig_t known = config();
    taccComm_t part = nullptr;
    std::int32_t isMade = taccCommSplit(comm_, 0, -self_, &part, &known) == taccSuccess ? 1 : 0;
    if (isMade == 0) {
      const std::string why = taccGetLastError(comm_);
      tellEvent(board_, fmt::format("rank {} has no part after {:.3f} s: {}", self_, now() - start, why));
      bool isExcused = false;
      for (int rank = 0; rank < round_.ranks; ++rank) isExcused |= isSabotaged(board_, rank, start);
      if (!isExcused) tell("there is no part: " + why);
    }
    const taccResult_t result = taccAllReduce(&isMade, &isMade, 1, taccInt32, taccMin, comm_, nullptr);
    if (result == taccSuccess && isMade == 1)
      companion_ = std::make_unique<Companion>(round_, board_, self_, members_, part);
    else if (part != nullptr)
      (void)taccCommDestroy(part);
  }

  /// False: it failed, and its message is in failure_.
  bool makeCall() {
    const std::uint32_t call = calls_++;
    const int p = static_cast<int>(members_.size());
    std::mt19937 random(round_.seed ^ (call * 2654435761U) ^ static_cast<std::uint32_t>(generation_ * 40503));
    const int kind = call % callsBetweenLooks == 0 ? 6 : static_cast<int>(random() % 6);
    const int root = static_cast<int>(random() % static_cast<unsigned>(p));
    const std::size_t most = bufferCount / static_cast<std::size_t>(p);
    const std::size_t count = 1 + random() % std::min<std::size_t>(most, std::size_t{1} << (random() % 17));
    const bool usesLibrary = random() % 3 == 0 && library_[0] != nullptr && library_[1] != nullptr && !isGuarding_;
    std::int32_t* send = usesLibrary ? library_[0] : plain_[0].data();
    std::int32_t* receive = usesLibrary ? library_[1] : plain_[1].data();
    const std::size_t sent = kind == 3 || kind == 5 ? count * static_cast<std::size_t>(p) : count;
    for (std::size_t i = 0; i < sent; ++i) send[i] = valueOf(self_, call, i);
    if (kind == 6) send[0] = board_.stop ? stop : companion_ && companion_->hasFailed() ? partHasFailed : goOn;
    std::fill_n(receive, count * static_cast<std::size_t>(p), -1);

    const double start = now();
    seat_.since = start;
    const taccResult_t result = make(kind, send, receive, count, root);
    const double seconds = now() - start;
    ++seat_.calls;
    if (seconds > timeout + grace && !isSabotaged(board_, self_, start))
      tell(fmt::format("a call took {:.1f} s, the time-out is {} s: {}", seconds, timeout,
                       result == taccSuccess ? "success" : taccGetLastError(comm_)));
    checkGuard();
    if (result != taccSuccess) {
      failure_ = taccGetLastError(comm_);
      tellEvent(board_, fmt::format("rank {} failed after {:.3f} s: {}", self_, seconds, failure_));
      ++seat_.errors;
      judge(round_, board_, self_, members_, failure_, start);
      return false;
    }
    if (kind != 6) check(kind, receive, count, root, call);
    isOver_ = kind == 6 && receive[0] == stop;
    if (kind == 6 && receive[0] == partHasFailed) makePart();
    return true;
  }

  taccResult_t make(int kind, const std::int32_t* send, std::int32_t* receive, std::size_t count, int root) {
    switch (kind) {
      case 0:
        return taccAllReduce(send, receive, count, taccInt32, taccSum, comm_, nullptr);
      case 1:
        return taccBroadcast(send, receive, count, taccInt32, root, comm_, nullptr);
      case 2:
        return taccAllGather(send, receive, count, taccInt32, comm_, nullptr);
      case 3:
        return taccReduceScatter(send, receive, count, taccInt32, taccSum, comm_, nullptr);
      case 4:
        return taccReduce(send, receive, count, taccInt32, taccSum, root, comm_, nullptr);
      case 5:
        return taccAllToAll(send, receive, count, taccInt32, comm_, nullptr);
      default:
        return taccAllReduce(send, receive, 1, taccInt32, taccMax, comm_, nullptr);
    }
  }

  void check(int kind, const std::int32_t* got, std::size_t count, int root, std::uint32_t call) {
    const std::size_t p = members_.size();
    const auto me = static_cast<std::size_t>(std::ranges::find(members_, self_) - members_.begin());
    if (kind == 4 && static_cast<std::size_t>(root) != me) return;
    const std::size_t received = kind == 2 || kind == 5 ? count * p : count;
    for (std::size_t i = 0; i < received; ++i) {
      std::int32_t right = 0;
      switch (kind) {
        case 1:
          right = valueOf(members_[static_cast<std::size_t>(root)], call, i);
          break;
        case 2:
          right = valueOf(members_[i / count], call, i % count);
          break;
        case 5:
          right = valueOf(members_[i / count], call, me * count + i % count);
          break;
        default:
          for (const int rank : members_) right += valueOf(rank, call, kind == 3 ? me * count + i : i);
      }
      if (got[i] == right) continue;
      return tell(fmt::format("wrong: element {} of {} of call {} (kind {}) is {}, not {}", i, received, call, kind,
                              got[i], right));
    }
  }

  /// From now on nobody writes into the library memory any more.
  void beginGuard() {
    for (std::int32_t* buffer : library_)
      if (buffer != nullptr) std::fill_n(buffer, bufferCount, guard);
    isGuarding_ = true;
    guardedTill_ = calls_ + 200;
  }

  void checkGuard() {
    if (!isGuarding_) return;
    for (const std::int32_t* buffer : library_)
      if (buffer != nullptr)
        if (const auto changed =
                bufferCount - static_cast<std::size_t>(std::count(buffer, buffer + bufferCount, guard));
            changed != 0) {
          tell(fmt::format("{} elements of memory were changed after its communicator had failed", changed));
          isGuarding_ = false;
          return;
        }
    if (calls_ >= guardedTill_) isGuarding_ = false;
  }

  bool recover() {
    seat_.stage = Stage::shrinking;
    const double start = now();
    seat_.since = start;
    (void)taccCommRevoke(comm_);
    if (companion_) companion_->end(false);
    taccComm_t smaller = nullptr;
    const taccConfig_t known = config();
    const taccResult_t result = taccCommShrink(comm_, nullptr, 0, &smaller, &known, 0);
    const std::string why = result == taccSuccess ? "" : taccGetLastError(comm_);
    tellEvent(board_, fmt::format("rank {} has shrunk in {:.3f} s: {}", self_, now() - start, why));
    (void)taccCommDestroy(comm_);
    comm_ = smaller;
    beginGuard();
    if (now() - start > 2 * initTimeout + grace && !isSabotaged(board_, self_, start))
      tell(fmt::format("shrink took {:.1f} s: {}", now() - start, why));
    if (result != taccSuccess) {
      comm_ = nullptr;
      failure_ = why;
      return false;
    }
    return adopt();
  }

  /// Who is in the new communicator: told by each.
  bool adopt() {
    int count = 0;
    (void)taccCommCount(comm_, &count);
    std::vector<std::int32_t> all(static_cast<std::size_t>(count));
    const std::int32_t self = self_;
    const Members before = maskOf(members_);
    if (taccAllGather(&self, all.data(), 1, taccInt32, comm_, nullptr) != taccSuccess) {
      failure_ = taccGetLastError(comm_);
      return false;  // who else is in it is not known, so who is blamed is not either
    }
    Members after = 0;
    for (const std::int32_t rank : all) after |= Members{1} << rank;
    const int view = seat_.viewCount;
    if (view < mostViews) {
      seat_.views[view] = {before, generation_, after};
      seat_.viewCount = view + 1;
    }
    const bool isOrdered = std::ranges::is_sorted(all) && std::popcount(after) == count && (after & ~before) == 0;
    if (!isOrdered) tell("a communicator of others than those that were left, or in another order");
    members_.assign(all.begin(), all.end());
    ++generation_;
    calls_ = 1;
    makePart();
    seat_.stage = Stage::calling;
    return true;
  }

  static Members maskOf(const std::vector<int>& ranks) {
    Members mask = 0;
    for (const int rank : ranks) mask |= Members{1} << rank;
    return mask;
  }

  const Round& round_;
  Board& board_;
  Seat& seat_;
  int self_;
  taccComm_t comm_ = nullptr;
  std::vector<int> members_;  // by their number in the communicator
  int generation_ = 0;
  std::uint32_t calls_ = 1, guardedTill_ = 0;
  bool isOver_ = false, isGuarding_ = false;
  std::string failure_;
  std::vector<std::int32_t> plain_[2] = {std::vector<std::int32_t>(bufferCount),
                                         std::vector<std::int32_t>(bufferCount)};
  std::int32_t* library_[2] = {};
  std::unique_ptr<Companion> companion_;  // null: no part
};

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void tellEvent(const Board& board, std::string_view what) {
  if (!board.tellsAll) return;
  const std::string line = fmt::format("chaos: at {:.3f}: {}\n", now(), what);
  (void)!::write(2, line.data(), line.size());
}

void tellProblem(Board& board, int round, int rank, std::string_view what) {
  ++board.problems;
  tellEvent(board, "wrong:");
  const std::string line = fmt::format("chaos: round {}, rank {}: {}\n", round, rank, what);
  (void)!::write(2, line.data(), line.size());
}

bool isSabotaged(const Board& board, int rank, double since) {
  return board.seats[rank].sabotagedTill >= since - timeout - grace;
}

void judge(const Round& round, Board& board, int self, const std::vector<int>& members, const std::string& failure,
           double since) {
  if (isSabotaged(board, self, since)) return;
  const auto says = [&](const char* words) { return failure.find(words) != std::string::npos; };
  if (says("no rank gets on, though all answer") || says("sends in vain: its host is cut off")) {
    // Of links: nobody is blamed, and rightly if one was cut.
    for (int rank = 0; rank < round.ranks; ++rank)
      if (isSabotaged(board, rank, since)) return;
  }
  const int named = culpritIn(failure);
  if (named < 0 || named >= static_cast<int>(members.size()))
    return tellProblem(board, round.number, self, "an error names nobody: " + failure);
  const int culprit = members[static_cast<std::size_t>(named)];
  if (!isSabotaged(board, culprit, since))
    tellProblem(board, round.number, self,
                fmt::format("an error blames rank {} (of the round), which is innocent: {}", culprit, failure));
}

/// The number behind the first `words` that one follows, or -1.
int numberAfter(std::string_view text, std::string_view words) {
  for (std::size_t at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1)) {
    int number = -1;
    if (std::from_chars(text.data() + at + words.size(), text.data() + text.size(), number).ec == std::errc())
      return number;
  }
  return -1;
}

int culpritIn(std::string_view message) {
  // "taccReduce on rank 3 of 4: rank 1 (...) reported: rank 2 (...) has died; rank 3 was in ...": the third of them.
  // "taccReduce on rank 3 of 4: rank 3 has lost rank 1: ...": the third of them, too.
  constexpr std::string_view reported = " reported: ";
  if (message.starts_with("tacc") && message.find(": ") != std::string_view::npos)
    message.remove_prefix(message.find(": "));
  int culprit = -1;
  for (;;) {
    const std::size_t next = message.find(reported);
    for (const std::string_view words : {" has lost rank ", " cannot reach rank ", "rank "}) {
      const int number = numberAfter(message.substr(0, next), words);
      if (number < 0) continue;
      culprit = number;
      break;
    }
    if (next == std::string_view::npos) return culprit;  // who reports trouble of its own names nobody else
    message.remove_prefix(next + reported.size());
  }
}

void runRank(const Round& round, Board& board, const taccUniqueId& id, int rank) { Rank(round, board, rank).run(id); }

}  // namespace tacc::chaos
