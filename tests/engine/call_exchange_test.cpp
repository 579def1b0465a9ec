// Interleavings of ranks that make calls through the rings of call lines: all of them for short programs on shallow
// rings, drawn ones for long programs on rings as deep as the library's. In each, every rank reads the payloads of the
// call that it is in, nobody waits for ever, programs that are equal meet no error, and those that are not always do.
//
//   TACC_TEST_LONG=1   all programs that are longer by a call, and twenty times as many that are drawn
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>
#include <unordered_set>

#include "call_model.hpp"
#include "support/settings.hpp"

namespace tacc::test {
namespace {

using Kind = ModelCall::Kind;
using Size = ModelCall::Size;
using ShallowModel = CallModel<4, 3>;
using EvenModel = CallModel<4, 2>;  // where all posts are equally long
using DeepModel = CallModel<callSlots, eagerSlots>;

bool isLong() { return std::getenv("TACC_TEST_LONG") != nullptr; }

constexpr std::uint32_t nearWrap = 0u - 16;  // so that the numbers come round within a program
constexpr std::uint32_t deepNearWrap = 0u - callSlots;

/// Every call that `ranks` ranks can make with a payload of `size`.
ModelProgram callsOf(int ranks, Size size) {
  ModelProgram calls{{Kind::all, 0, size}};
  for (int root = 0; root < ranks; ++root)
    for (const Kind kind : {Kind::down, Kind::up}) calls.push_back({kind, root, size});
  return calls;
}
ModelProgram callsOf(int ranks) {
  ModelProgram calls;
  for (const Size size : {Size::note, Size::line, Size::eager, Size::longEager})
    for (const ModelCall& call : callsOf(ranks, size)) calls.push_back(call);
  return calls;
}

std::string describe(const ModelProgram& program) {
  std::string text;
  for (const ModelCall& call : program) text += describeSignature(call.signature()) + "; ";
  return text;
}

/// What came of the schedules of some programs.
struct Seen {
  std::size_t states = 0;
  std::size_t ends = 0;  // in which all ranks had made all their calls
  std::set<std::string> errors;
  std::string fault;  // "" if nothing happened that must not
};

/// Goes through all interleavings: depth first over the states, each of which is left in every way once.
template <class Model>
Seen explore(Model& model) {
  Seen seen;
  std::unordered_set<std::uint64_t> known{model.digest()};
  std::vector<typename Model::State> open{model.state};
  while (!open.empty()) {
    const typename Model::State from = open.back();
    open.pop_back();
    ++seen.states;
    bool moved = false, finished = true;
    for (int rank = 0; rank < model.ranks(); ++rank) {
      model.state = from;
      try {
        const auto outcome = model.step(rank);
        finished = finished && outcome == Model::Outcome::finished;
        if (outcome != Model::Outcome::stepped) continue;
        moved = true;
        if (known.insert(model.digest()).second) open.push_back(model.state);
      } catch (const Error& error) {
        moved = true;
        finished = false;
        seen.errors.insert(error.what());
      } catch (const std::logic_error& error) {
        seen.fault = error.what();
        return seen;
      }
    }
    if (finished) ++seen.ends;
    if (!moved && !finished) {
      seen.fault = "all ranks wait for each other";
      return seen;
    }
  }
  return seen;
}

/// One drawn interleaving: ranks move in bursts, so that they drift apart, and within each other's steps.
template <class Model>
class RandomSchedule {
 public:
  RandomSchedule(Model& model, std::mt19937& random) : model_(model), random_(random) {
    model_.interrupt = [this](int rank) { moveOthers(rank); };
  }

  Seen run() {
    while (!isOver()) {
      moved_ = false;
      for (int tries = 0; tries < 64 && !moved_; ++tries) burst();
      for (int rank = 0; rank < model_.ranks() && !moved_; ++rank) move(rank);
      if (!moved_ && !isOver()) seen_.fault = "all ranks wait for each other";
    }
    if (!isEnded()) ++seen_.ends;
    return seen_;
  }

 private:
  int draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  bool isEnded() const { return !seen_.errors.empty() || !seen_.fault.empty(); }
  bool isOver() const {
    bool finished = true;
    for (int rank = 0; rank < model_.ranks(); ++rank) finished = finished && model_.isFinished(rank);
    return finished || isEnded();
  }
  /// False where the rank cannot. Throws nothing, since it is called within steps of other ranks.
  bool move(int rank) {
    if (busy_[static_cast<std::size_t>(rank)] || isEnded()) return false;
    busy_[static_cast<std::size_t>(rank)] = true;
    bool stepped = false;
    try {
      stepped = model_.step(rank) == Model::Outcome::stepped;
    } catch (const Error& error) {
      seen_.errors.insert(error.what());
    } catch (const std::logic_error& error) {
      seen_.fault = error.what();
    }
    busy_[static_cast<std::size_t>(rank)] = false;
    moved_ = moved_ || stepped;
    return stepped;
  }
  void burst() {
    const int rank = draw(model_.ranks());
    for (int steps = 1 << draw(8); steps > 0 && move(rank);) --steps;
  }
  void moveOthers(int) {
    if (draw(16) == 0) burst();
  }

  Model& model_;
  std::mt19937& random_;
  Seen seen_;
  std::array<bool, Model::most> busy_{};  // within a step
  bool moved_ = false;
};

void expectCorrect(const Seen& seen, int ranks, const ModelProgram& program) {
  EXPECT_EQ(seen.fault, "") << ranks << " ranks: " << describe(program);
  for (const std::string& error : seen.errors) ADD_FAILURE() << ranks << " ranks: " << describe(program) << error;
  EXPECT_GE(seen.ends, 1U) << ranks << " ranks: " << describe(program);
}

/// What a rank says is true: the calls that it names are those that the ranks made.
void expectTrue(const std::string& error, const std::vector<ModelProgram>& programs, std::uint32_t start) {
  for (std::size_t rank = 0; rank < programs.size(); ++rank)
    for (std::size_t other = 0; other < programs.size(); ++other)
      for (std::uint32_t i = 0; i < programs[rank].size(); ++i)
        if (error.starts_with(fmt::format("call {} is {} on rank {} but {} on rank {};", start + i + 1,
                                          describeSignature(programs[rank][i].signature()), rank,
                                          describeSignature(programs[other][i].signature()), other)))
          return;
  EXPECT_NE(error.find("made different calls before call"), std::string::npos) << error;
}

/// Programs of which one differs. `seen` must have found it on every way.
void expectFound(const Seen& seen, const std::vector<ModelProgram>& programs, std::uint32_t start) {
  std::string text;
  for (const ModelProgram& program : programs) text += "\n  " + describe(program);
  EXPECT_EQ(seen.fault, "") << text;
  EXPECT_EQ(seen.ends, 0U) << "nobody has noticed" << text;
  EXPECT_GE(seen.errors.size(), 1U) << text;
  for (const std::string& error : seen.errors) expectTrue(error, programs, start);
}

template <class Draw>
ModelProgram drawProgram(std::size_t length, const ModelProgram& calls, Draw&& draw) {
  ModelProgram program;
  while (program.size() < length) {
    const ModelCall call = calls[draw(calls.size())];
    const std::size_t run = draw(3) == 0 ? 1 + draw(length) : 1;
    for (std::size_t i = 0; i < run && program.size() < length; ++i) program.push_back(call);
  }
  return program;
}

/// One rank's call is replaced by another one; at the end all meet.
std::vector<ModelProgram> makeDifferent(ModelProgram program, int ranks, const ModelProgram& calls, auto&& draw) {
  const std::size_t at = draw(program.size());
  program.push_back({Kind::all, 0, Size::line});
  std::vector<ModelProgram> programs(static_cast<std::size_t>(ranks), program);
  ModelCall& changed = programs[draw(programs.size())][at];
  while (changed == program[at]) changed = calls[draw(calls.size())];
  return programs;
}

std::vector<ModelProgram> alike(int ranks, const ModelProgram& program) {
  return std::vector<ModelProgram>(static_cast<std::size_t>(ranks), program);
}

/// All programs of `length` calls out of `calls`.
template <class Model>
void exploreAll(int ranks, std::size_t length, const ModelProgram& calls) {
  std::size_t programs = 0, states = 0;
  std::vector<std::size_t> choice(length, 0);
  for (bool more = true; more && !testing::Test::HasFailure();) {
    ModelProgram program;
    for (const std::size_t c : choice) program.push_back(calls[c]);
    Model model(alike(ranks, program), nearWrap);
    const Seen seen = explore(model);
    expectCorrect(seen, ranks, program);
    ++programs;
    states += seen.states;
    more = false;
    for (std::size_t i = 0; i < length && !more; ++i) {
      choice[i] = (choice[i] + 1) % calls.size();
      more = choice[i] != 0;
    }
  }
  std::printf("%zu programs of %zu calls on %d ranks, %zu states\n", programs, length, ranks, states);
}

TEST(CallExchange, isRightInAllInterleavingsOfShortPrograms) {
  for (const Size size : {Size::note, Size::line, Size::longEager}) {
    exploreAll<EvenModel>(2, isLong() ? 7 : isQuick() ? 4 : 6, callsOf(2, size));
    exploreAll<EvenModel>(3, isLong() ? 4 : isQuick() ? 2 : 3, callsOf(3, size));
  }
  exploreAll<ShallowModel>(2, isLong() ? 4 : isQuick() ? 2 : 3, callsOf(2));
}

class Drawn : public testing::Test {
 protected:
  static constexpr unsigned seed = 20;
  std::mt19937 random{seed};
  std::size_t draw(std::size_t below) { return random() % below; }
  auto drawer() {
    return [this](std::size_t below) { return draw(below); };
  }
};

TEST_F(Drawn, programsAreRightInAllInterleavings) {
  std::size_t states = 0;
  for (int i = 0; i < (isLong() ? 10'000 : isQuick() ? 20 : 400) && !HasFailure(); ++i) {
    const int ranks = 2 + i % 2;
    const ModelProgram program = drawProgram(ranks == 2 ? 14 : 8, callsOf(ranks), drawer());
    ShallowModel model(alike(ranks, program), i % 4 == 0 ? nearWrap : 0);
    const Seen seen = explore(model);
    expectCorrect(seen, ranks, program);
    states += seen.states;
  }
  std::printf("%zu states\n", states);
}

TEST_F(Drawn, programsThatDifferAreFoundInAllInterleavings) {
  std::size_t states = 0;
  for (int i = 0; i < (isLong() ? 10'000 : isQuick() ? 20 : 400) && !HasFailure(); ++i) {
    const int ranks = 2 + i % 2;
    const auto programs =
        makeDifferent(drawProgram(ranks == 2 ? 12 : 7, callsOf(ranks), drawer()), ranks, callsOf(ranks), drawer());
    const std::uint32_t start = i % 4 == 0 ? nearWrap : 0;
    ShallowModel model(programs, start);
    const Seen seen = explore(model);
    expectFound(seen, programs, start);
    states += seen.states;
  }
  std::printf("%zu states\n", states);
}

// Of two ranks that wait for nobody: both are roots of their broadcasts.
TEST(CallExchange, comparesWhatIsPostedWithoutWaiting) {
  for (const int other : {0, 1}) {
    DeepModel model({{{Kind::down, 0, Size::line}}, {{Kind::down, other, Size::line}}});
    const auto compare = [&](std::size_t rank) { model.state.exchanges[rank]->compareSeen(); };
    model.step(0);
    compare(0);
    model.step(0);
    compare(0);  // the other has posted nothing
    model.step(1);
    compare(1);  // nor is this rank in a call that others know
    model.step(1);
    for (const std::size_t rank : {0U, 1U}) {
      if (other == 0)
        EXPECT_NO_THROW(compare(rank));
      else
        EXPECT_THROW(compare(rank), Error);
    }
  }
}

TEST_F(Drawn, longProgramsAreRightInDrawnInterleavings) {
  for (int i = 0; i < (isLong() ? 25'000 : isQuick() ? 125 : 1250) && !HasFailure(); ++i) {
    const int ranks = 2 + i % 2;
    const ModelProgram program = drawProgram(5 * callSlots, callsOf(ranks), drawer());
    DeepModel model(alike(ranks, program), i % 4 == 0 ? deepNearWrap : 0);
    expectCorrect(RandomSchedule(model, random).run(), ranks, program);
  }
}

TEST_F(Drawn, longProgramsThatDifferAreFoundInDrawnInterleavings) {
  for (int i = 0; i < (isLong() ? 25'000 : isQuick() ? 125 : 1250) && !HasFailure(); ++i) {
    const int ranks = 2 + i % 2;
    const auto programs =
        makeDifferent(drawProgram(5 * callSlots, callsOf(ranks), drawer()), ranks, callsOf(ranks), drawer());
    const std::uint32_t start = i % 4 == 0 ? deepNearWrap : 0;
    DeepModel model(programs, start);
    expectFound(RandomSchedule(model, random).run(), programs, start);
  }
}

}  // namespace
}  // namespace tacc::test
