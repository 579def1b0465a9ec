// Plans as text: what is written loads back equal, and every malformed line is named.
#include "algorithms/text.hpp"

#include <gtest/gtest.h>

#include "algorithms/picture.hpp"
#include "algorithms/registry.hpp"
#include "algorithms/verifier.hpp"
#include "core/error.hpp"
#include "interpreter.hpp"

namespace tacc {
namespace {

TEST(Text, EveryPlanLoadsBackEqual) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const int p : {1, 2, 3, 5, 8, 9}) {
      for (const PlanRequest& request : test::requestsServed(algorithm, p)) {
        const Plan plan = makePlan(algorithm, request);
        ASSERT_EQ(fromText(toText(plan)), plan) << test::describe(plan);
      }
    }
  }
}

const std::string goodText =
    "tacc plan 1\n"                                      // 1
    "collective broadcast\n"                             // 2
    "algorithm by_hand\n"                                // 3
    "ranks 2\n"                                          // 4
    "root 1\n"                                           // 5
    "blocks 2\n"                                         // 6
    "scratch 0\n"                                        // 7
    "rounds 2\n"                                         // 8
    "rank 0\n"                                           // 9
    "  round 1\n"                                        // 10
    "    blocks 0 to 1: peer 1 -> output 0\n"            // 11
    "rank 1\n"                                           // 12
    "  round 0\n"                                        // 13
    "    blocks 0 to 1: input 0 -> output 0, peer 0\n";  // 14

TEST(Text, IsReadable) {
  const Plan plan = fromText(goodText);
  EXPECT_EQ(plan.request, (PlanRequest{Collective::broadcast, 2, 1}));
  EXPECT_EQ(plan.algorithm, "by_hand");
  EXPECT_EQ(plan.blocks, 2);
  EXPECT_EQ(plan.ranks[1].steps[0], (Step{0, 0, 2, {input(0)}, {output(0), peer(0)}}));
  EXPECT_EQ(toText(plan), goodText);
}

TEST(Text, NamesGroupsDimensionsAndNarrowRanks) {
  PlanRequest request{Collective::allReduce, 8, 0, equalGroups(8, {2, 2}), {}};
  const Plan grouped = makePlan(*findAlgorithm("hierarchical"), request);
  EXPECT_NE(toText(grouped).find("root 0\ngroups 2 2 2 2\ngroups 4 4\nblocks 8\n"), std::string::npos);
  EXPECT_EQ(fromText(toText(grouped)), grouped);
  request = {Collective::allReduce, 8, 0, {}, {2, 4}};
  const Plan torus = makePlan(*findAlgorithm("swing"), request);
  EXPECT_NE(toText(torus).find("root 0\ndimensions 2 4\nblocks 8\n"), std::string::npos);
  EXPECT_EQ(fromText(toText(torus)), torus);
  request = {Collective::allReduce, 8, 0, {}, {}, {3, 5}};
  const Plan narrow = makePlan(*findAlgorithm("narrow_leaves"), request);
  EXPECT_NE(toText(narrow).find("root 0\nnarrow 3 5\nblocks 8\n"), std::string::npos);
  EXPECT_EQ(fromText(toText(narrow)), narrow);
}

TEST(Picture, HasAnArrowForEveryMessage) {
  for (const std::string_view name : {"ring", "bine", "halving_doubling_near"}) {
    const Plan plan = makePlan(*findAlgorithm(name), {Collective::allReduce, 8, 0});
    const std::string picture = toPicture(plan);
    std::uint64_t heads = 0;
    for (std::size_t at = 0; (at = picture.find("class=\"head\"", at)) != std::string::npos; ++at) ++heads;
    EXPECT_EQ(heads, verify(plan).messages) << name;
    EXPECT_TRUE(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    EXPECT_EQ(picture.find("dasharray"), std::string::npos);
  }
}

/// 4 ranks in groups of 2: of the 3 messages of a rank one stays in its group.
TEST(Picture, TellsMessagesInsideGroupsApart) {
  const std::string picture =
      toPicture(makePlan(*findAlgorithm("twoshot"), {Collective::allReduce, 4, 0, {{2, 2}}, {}}));
  const auto count = [&](std::string_view what) {
    int times = 0;
    for (std::size_t at = 0; (at = picture.find(what, at)) != std::string::npos; ++at) ++times;
    return times;
  };
  EXPECT_EQ(count("class=\"head\""), 24);
  EXPECT_EQ(count("dasharray"), 8);
}

TEST(Text, StacksNameNumbersOfBlocks) {
  const std::string text = toText(makePlan(*findAlgorithm("recursive_doubling"), {Collective::allGather, 4, 0}));
  EXPECT_NE(text.find("    1 block: input 0 -> output 0, peer 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    2 blocks: peer 2 -> output 2\n"), std::string::npos) << text;
}

std::string replaced(std::string from, const std::string& to) {
  std::string text = goodText;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expectError(const std::string& text, const std::string& part) {
  try {
    fromText(text);
    FAIL() << "accepted, expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidArgument);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << "\nexpected: " << part;
  }
}

TEST(Text, CommentsBlankLinesAndLineEndsAreIgnored) {
  EXPECT_EQ(fromText(replaced("rank 1\n", "\n  # between\nrank 1   # the root\r\n")), fromText(goodText));
  EXPECT_EQ(fromText(goodText.substr(0, goodText.size() - 1)), fromText(goodText));
}

TEST(Text, MalformedLinesAreNamed) {
  expectError("tacc\x01\xff " + std::string(5000, 'x'), "line 1: expected \"tacc\", found \"tacc??\"");
  expectError("", "line 1: expected \"tacc\", found \"the end of the line\"");
  expectError("tacc plan 2\n", "line 1: expected \"1\", found \"2\"");
  expectError("tacc plan 1\n", "line 2: expected \"collective\"");
  expectError(replaced("broadcast", "broadcasts"), "line 2: there is no collective \"broadcasts\"");
  expectError(replaced("broadcast", "barrier"), "line 2: there is no collective \"barrier\"");
  expectError(replaced("algorithm by_hand", "algorithm"), "line 3: expected the algorithm's name");
  expectError(replaced("by_hand", "by hand"), "line 3: unexpected \"hand\"");
  expectError(replaced("ranks 2", "ranks two"), "line 4: expected ranks, a number");
  expectError(replaced("ranks 2", "ranks -2"), "line 4: expected ranks, a number");
  expectError(replaced("ranks 2", "ranks 99999999999"), "line 4: expected ranks, a number");
  expectError(replaced("root 1", "blocks 1"), "line 5: expected \"root\", found \"blocks\"");
  expectError(replaced("rank 0\n", "rank 1\n"), "line 9: expected rank 0, found 1");
  expectError(replaced("  round 1\n", ""), "line 10: expected \"rank\" or \"round\", found \"blocks\"");
  expectError(replaced("rank 0\n", ""), "line 9: a round stands before the first \"rank\"");
  expectError(replaced("blocks 0 to 1: peer", "blocks 1 to 0: peer"), "line 11: the last block, 0, is before");
  expectError(replaced("blocks 0 to 1: peer", "blocks 0 to 2147483647: peer"), "line 11: the last block is 2147483647");
  expectError(replaced("0 to 1: peer 1", "0 to 1 peer 1"), "line 11: expected \":\", found \"peer\"");
  expectError(replaced("peer 1 -> output 0", "peer 1 -> "), "line 11: expected input, output, scratch or peer");
  expectError(replaced("peer 1 -> output 0", "peer 1 output 0"), "line 11: expected \"->\", found \"output\"");
  expectError(replaced("peer 1 -> output 0", "peer 1 -> output"), "line 11: expected the operand's number");
  expectError(replaced("peer 1 -> output 0", "peer 1 -> output 0 x"), "line 11: unexpected \"x\"");
  expectError(replaced("peer 1 -> output 0", "pear 1 -> output 0"), "line 11: expected input, output, scratch or peer");
  expectError(goodText + "rank 2\n", "ends after 3 of 2 ranks");
  expectError(replaced("ranks 2", "ranks 2000000000"), "ends after 2 of 2000000000 ranks");
}

/// Form is right, but the plan is not: what fails is the proof.
TEST(Text, WhatIsLoadedIsProven) {
  expectError(replaced("round 0\n", "round 1\n"), "takes a message that rank 1 sends in round 1");
  expectError(replaced("output 0, peer 0", "peer 0"), "output block 0 of rank 1 was never written");
}

}  // namespace
}  // namespace tacc
