#include "algorithms/text.hpp"

#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <vector>

#include "algorithms/verifier.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

constexpr std::array<std::string_view, 4> kindNames = {"input", "output", "scratch", "peer"};

void writeNumbers(std::string& text, std::string_view name, const std::vector<int>& numbers) {
  text += name;
  for (const int number : numbers) fmt::format_to(std::back_inserter(text), " {}", number);
  text += '\n';
}

void writeOperands(std::string& text, const std::vector<Operand>& operands, std::string_view separator) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{}{} {}", i > 0 ? separator : "",
                   kindNames[static_cast<std::size_t>(operands[i].kind)], operands[i].index);
  }
}

void writeStep(std::string& text, const Step& step, bool split) {
  auto out = std::back_inserter(text);
  text += "    ";
  if (!split) {
    fmt::format_to(out, "{} block{}", step.blockCount, step.blockCount == 1 ? "" : "s");
  } else if (step.blockCount == 1) {
    fmt::format_to(out, "block {}", step.block);
  } else {
    fmt::format_to(out, "blocks {} to {}", step.block, step.block + step.blockCount - 1);
  }
  text += ": ";
  writeOperands(text, step.sources, " + ");
  text += " -> ";
  writeOperands(text, step.destinations, ", ");
  text += '\n';
}

/// The words of one line; ':' and ',' are words of their own.
struct Line {
  int number;
  std::vector<std::string_view> words;
  std::size_t next = 0;

  template <class... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    fail(taccInvalidArgument, "plan text, line {}: {}", number, fmt::format(format, std::forward<Args>(args)...));
  }

  bool atEnd() const { return next == words.size(); }
  std::string_view word() const { return atEnd() ? std::string_view("the end of the line") : words[next]; }
  /// The word for messages: short and printable, whatever file this is.
  std::string shown() const {
    std::string text(word().substr(0, 40));
    for (char& c : text) c = c < ' ' || c > '~' ? '?' : c;
    return text;
  }

  bool accept(std::string_view expected) {
    if (atEnd() || words[next] != expected) return false;
    ++next;
    return true;
  }
  void expect(std::string_view expected) {
    if (!accept(expected)) reject("expected \"{}\", found \"{}\"", expected, shown());
  }
  int expectNumber(std::string_view what) {
    int value = 0;
    const std::string_view digits = atEnd() ? std::string_view() : words[next];
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || stop != digits.data() + digits.size() || value < 0) {
      reject("expected {}, a number from 0 to 2147483647, found \"{}\"", what, shown());
    }
    ++next;
    return value;
  }
  void expectEnd() const {
    if (!atEnd()) reject("unexpected \"{}\"", shown());
  }
};

std::vector<std::string_view> wordsInLine(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  const auto isMark = [](char c) { return c == ':' || c == ','; };
  const auto isBlank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i + 1;
    if (isBlank(line[i])) {
      i = end;
      continue;
    }
    while (!isMark(line[i]) && end < line.size() && !isMark(line[end]) && !isBlank(line[end])) ++end;
    words.push_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

class Reader {
 public:
  explicit Reader(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::vector<std::string_view> words = wordsInLine(text.substr(0, end));
      ++number;
      if (!words.empty()) lines_.push_back({number, std::move(words)});
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    lines_.push_back({number + 1, {}});
  }

  Plan read() {
    readHead();
    while (!line().atEnd()) {
      if (line().accept("rank")) {
        startRank();
      } else if (line().accept("round")) {
        if (plan_.ranks.empty()) line().reject("a round stands before the first \"rank\"");
        round_ = line().expectNumber("the round");
      } else {
        readStep();
      }
      line().expectEnd();
      ++current_;
    }
    if (plan_.ranks.size() != static_cast<std::size_t>(plan_.request.ranks)) {
      line().reject("the plan ends after {} of {} ranks", plan_.ranks.size(), plan_.request.ranks);
    }
    return std::move(plan_);
  }

 private:
  Line& line() { return lines_[current_]; }

  void readHead() {
    for (const std::string_view word : {"tacc", "plan", "1"}) line().expect(word);
    nextLine();
    line().expect("collective");
    const std::string_view name = line().word();
    const std::optional<Collective> collective = collectiveNamed(name);
    if (!collective) line().reject("there is no collective \"{}\" with plans", line().shown());
    plan_.request.collective = *collective;
    ++line().next;
    nextLine();
    line().expect("algorithm");
    if (line().atEnd()) line().reject("expected the algorithm's name");
    plan_.algorithm = line().word();
    ++line().next;
    nextLine();
    readField("ranks", plan_.request.ranks);
    readField("root", plan_.request.root);
    while (line().accept("groups")) plan_.request.groups.push_back(readNumbers("a group's size"));
    if (line().accept("dimensions")) plan_.request.dimensions = readNumbers("a dimension");
    if (line().accept("narrow")) plan_.request.narrow = readNumbers("a narrow rank");
    readField("blocks", plan_.blocks);
    readField("scratch", plan_.scratchBlocks);
    readField("rounds", plan_.rounds);
  }

  void readField(std::string_view name, int& field) {
    line().expect(name);
    field = line().expectNumber(name);
    nextLine();
  }

  std::vector<int> readNumbers(std::string_view what) {
    std::vector<int> numbers;
    do {
      numbers.push_back(line().expectNumber(what));
    } while (!line().atEnd());
    nextLine();
    return numbers;
  }

  void nextLine() {
    line().expectEnd();
    if (current_ + 1 < lines_.size()) ++current_;
  }

  void startRank() {
    const int rank = line().expectNumber("the rank");
    if (static_cast<std::size_t>(rank) != plan_.ranks.size()) {
      line().reject("expected rank {}, found {}; ranks come in order, each once", plan_.ranks.size(), rank);
    }
    plan_.ranks.emplace_back();
    round_ = -1;
  }

  void readStep() {
    Step step{round_, 0, 1, {}, {}, false};
    if (plan_.ranks.empty() || round_ < 0)
      line().reject("expected \"rank\" or \"round\", found \"{}\"", line().shown());
    if (partitionOf(plan_.request.collective) == Partition::stack) {
      step.blockCount = line().expectNumber("a number of blocks");
      line().expect(step.blockCount == 1 ? "block" : "blocks");
    } else if (line().accept("blocks")) {
      step.block = line().expectNumber("the first block");
      line().expect("to");
      const int last = line().expectNumber("the last block");
      if (last < step.block) line().reject("the last block, {}, is before the first, {}", last, step.block);
      if (last >= plan_.blocks) line().reject("the last block is {}, but the plan has {} blocks", last, plan_.blocks);
      step.blockCount = last - step.block + 1;
    } else {
      line().expect("block");
      step.block = line().expectNumber("the block");
    }
    line().expect(":");
    do {
      step.sources.push_back(readOperand());
    } while (line().accept("+"));
    line().expect("->");
    do {
      step.destinations.push_back(readOperand());
    } while (line().accept(","));
    plan_.ranks.back().steps.push_back(std::move(step));
  }

  Operand readOperand() {
    for (std::size_t kind = 0; kind < kindNames.size(); ++kind) {
      if (!line().accept(kindNames[kind])) continue;
      return {static_cast<Operand::Kind>(kind), line().expectNumber("the operand's number")};
    }
    line().reject("expected input, output, scratch or peer, found \"{}\"", line().shown());
  }

  std::vector<Line> lines_;  // the last one is empty
  std::size_t current_ = 0;
  Plan plan_;
  int round_ = -1;
};

}  // namespace

std::string toText(const Plan& plan) {
  const PlanRequest& request = plan.request;
  std::string text = fmt::format("tacc plan 1\ncollective {}\nalgorithm {}\nranks {}\nroot {}\n",
                                 nameOf(request.collective), plan.algorithm, request.ranks, request.root);
  for (const std::vector<int>& level : request.groups) writeNumbers(text, "groups", level);
  if (!request.dimensions.empty()) writeNumbers(text, "dimensions", request.dimensions);
  if (!request.narrow.empty()) writeNumbers(text, "narrow", request.narrow);
  fmt::format_to(std::back_inserter(text), "blocks {}\nscratch {}\nrounds {}\n", plan.blocks, plan.scratchBlocks,
                 plan.rounds);
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    fmt::format_to(std::back_inserter(text), "rank {}\n", rank);
    int round = -1;
    for (const Step& step : plan.ranks[rank].steps) {
      if (step.round != round) fmt::format_to(std::back_inserter(text), "  round {}\n", step.round);
      round = step.round;
      writeStep(text, step, partitionOf(request.collective) == Partition::split);
    }
  }
  return text;
}

Plan fromText(std::string_view text) {
  Plan plan = Reader(text).read();
  verifyAndComplete(plan);
  return plan;
}

}  // namespace tacc
