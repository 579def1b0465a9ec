#include "algorithms/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "algorithms/verifier.hpp"

namespace tacc {
namespace {

constexpr double rowHeight = 34, left = 60, top = 52, bottom = 14;

/// Hues that differ for blocks that are near each other, and stay readable on white and on black.
std::string colourOf(int block, int blocks) {
  return fmt::format("hsl({:.0f},65%,45%)", 360.0 * block / std::max(blocks, 1));
}

class Picture {
 public:
  explicit Picture(const Plan& plan)
      : plan_(plan), columnWidth_(std::clamp(900.0 / std::max(plan.rounds, 1), 26.0, 120.0)) {}

  std::string draw() {
    const double width = x(plan_.rounds - 1) + 40, height = y(plan_.request.ranks - 1) + rowHeight / 2 + bottom;
    fmt::format_to(out_,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
                   "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
                   "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
                   "<text x=\"8\" y=\"16\" font-size=\"13\">{2} {3}, {4} ranks</text>\n",
                   width, height, plan_.algorithm, nameOf(plan_.request.collective), plan_.request.ranks);
    for (int round = 0; round < plan_.rounds; ++round)
      fmt::format_to(out_, "<text x=\"{:.0f}\" y=\"34\" text-anchor=\"middle\" fill=\"gray\">{}</text>\n", x(round),
                     round);
    for (int rank = 0; rank < plan_.request.ranks; ++rank)
      fmt::format_to(out_,
                     "<text x=\"8\" y=\"{0:.0f}\" fill=\"gray\">rank {1}</text><path d=\"M{2:.0f} {3:.0f}H{4:.0f}\" "
                     "stroke=\"#ddd\"/>\n",
                     y(rank) + 4, rank, left - 10, y(rank), width - 20);
    drawMessages();
    drawSteps();
    return std::move(text_) + "</svg>\n";
  }

 private:
  double x(int round) const { return left + 10 + round * columnWidth_; }
  double y(int rank) const { return top + rank * rowHeight; }

  /// The whole of the data, in blocks.
  int allBlocks() const {
    return partitionOf(plan_.request.collective) == Partition::split ? plan_.blocks : plan_.request.ranks;
  }

  void drawMessages() {
    std::map<std::pair<int, int>, std::vector<const Step*>> sent;
    for (int rank = 0; rank < plan_.request.ranks; ++rank)
      for (const Step& step : plan_.ranks[rank].steps)
        for (const Operand& to : step.destinations)
          if (to.kind == Operand::Kind::peer) sent[{rank, to.index}].push_back(&step);
    std::map<std::pair<int, int>, std::size_t> taken;
    for (int rank = 0; rank < plan_.request.ranks; ++rank)
      for (const Step& step : plan_.ranks[rank].steps)
        for (const Operand& from : step.sources)
          if (from.kind == Operand::Kind::peer) {
            const std::pair<int, int> pair{from.index, rank};
            drawMessage(*sent[pair][taken[pair]++], from.index, step, rank);
          }
  }

  /// Whether both are in one innermost group, such as the ranks of a host: it goes through memory there.
  bool isInside(int a, int b) const {
    if (plan_.request.groups.empty()) return false;
    int begin = 0;
    for (const int size : plan_.request.groups.front()) {
      if (a < begin + size || b < begin + size) return a >= begin && b >= begin && std::max(a, b) < begin + size;
      begin += size;
    }
    return false;
  }

  /// Stops short of the dot, so that the head is seen.
  void drawMessage(const Step& send, int sender, const Step& receive, int receiver) {
    const double x1 = x(send.round), x2 = x(receive.round) - 5, y1 = y(sender);
    const double y2 = y(receiver) + (receiver > sender ? -3 : 3);
    const std::string colour = colourOf(send.block, plan_.blocks);
    const double width = 1 + 3.0 * send.blockCount / allBlocks();
    fmt::format_to(out_,
                   "<path d=\"M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}\" stroke=\"{4}\" stroke-width=\"{5:.1f}\"{7}/>"
                   "<circle class=\"head\" cx=\"{2:.1f}\" cy=\"{3:.1f}\" r=\"{6:.1f}\" fill=\"{4}\"/>\n",
                   x1, y1, x2, y2, colour, width, width / 2 + 1.2,
                   isInside(sender, receiver) ? " stroke-dasharray=\"4 3\"" : "");
  }

  void drawSteps() {
    for (int rank = 0; rank < plan_.request.ranks; ++rank) {
      std::map<int, bool> reduces;  // by round
      for (const Step& step : plan_.ranks[rank].steps) reduces[step.round] |= step.sources.size() > 1;
      for (const auto& [round, does] : reduces)
        fmt::format_to(out_, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"black\"/>\n", x(round),
                       y(rank), does ? "black" : "white");
    }
  }

  const Plan& plan_;
  double columnWidth_;
  std::string text_;
  std::back_insert_iterator<std::string> out_{text_};
};

}  // namespace

std::string toPicture(const Plan& plan) {
  verify(plan);
  return Picture(plan).draw();
}

}  // namespace tacc
