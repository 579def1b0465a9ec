#include "algorithms/verifier.hpp"

#include <algorithm>

#include "algorithms/proof.hpp"
#include "core/error.hpp"

namespace tacc {

namespace proof {

void measureTraffic(const Plan& plan, const PlanAnalysis& analysis, Certificate& certificate) {
  const std::size_t p = plan.ranks.size();
  std::vector<std::uint64_t> sent(p, 0);
  std::vector<std::uint64_t> received(p, 0);
  for (const PlanAnalysis::Message& message : analysis.messages) {
    const auto blocks = static_cast<std::uint64_t>(analysis.steps[message.sendStep].step->blockCount);
    sent[message.sender] += blocks;
    received[message.receiver] += blocks;
  }
  certificate.messages = analysis.messages.size();
  certificate.maxBlocksSent = *std::max_element(sent.begin(), sent.end());
  certificate.maxBlocksReceived = *std::max_element(received.begin(), received.end());

  // Messages on the longest chain that ends in the step; `done` and `open`: in a rank's rounds before, and with this
  // one.
  std::vector<int> chain(analysis.steps.size(), 0);
  std::vector<int> done(p, 0);
  std::vector<int> open(p, 0);
  std::vector<int> roundOf(p, -1);
  for (const int id : analysis.byRound) {
    const StepRef& ref = analysis.steps[id];
    if (roundOf[ref.rank] != ref.step->round) {
      roundOf[ref.rank] = ref.step->round;
      done[ref.rank] = open[ref.rank];
    }
    int length = done[ref.rank];
    for (int i = analysis.firstReceived[id]; i < analysis.firstReceived[id + 1]; ++i) {
      length = std::max(length, chain[analysis.messages[analysis.received[i]].sendStep] + 1);
    }
    chain[id] = length;
    open[ref.rank] = std::max(open[ref.rank], length);
    certificate.longestChain = std::max(certificate.longestChain, length);
  }
}

}  // namespace proof

namespace {

/// Of a plan whose form is right; `completes`: as of proveDataflow().
Certificate prove(const Plan& plan, const PlanAnalysis& analysis, bool inPlace, std::vector<bool>& completes) {
  const proof::Cells cells(plan, inPlace);
  Certificate certificate;
  completes = proof::proveDataflow(plan, analysis, cells, certificate);
  proof::measureTraffic(plan, analysis, certificate);
  certificate.overwrittenMessages = proof::countOverwritten(plan, analysis, cells);
  return certificate;
}

}  // namespace

Certificate verify(const Plan& plan, bool inPlace) {
  proof::checkForm(plan);
  const PlanAnalysis analysis(plan);
  std::vector<bool> completes;
  const Certificate certificate = prove(plan, analysis, inPlace, completes);
  for (std::size_t id = 0; id < completes.size(); ++id) {
    const proof::StepRef& ref = analysis.steps[id];
    if (ref.step->completes == completes[id]) continue;
    fail(taccInvalidArgument, "{}: {}", placeOfStep(plan, ref.rank, static_cast<std::size_t>(ref.index)),
         completes[id] ? "combines the last contributions, and does not say so"
                       : "is said to combine the last contributions, and does not");
  }
  return certificate;
}

Certificate verifyAndComplete(Plan& plan) {
  proof::checkForm(plan);
  const PlanAnalysis analysis(plan);
  std::vector<bool> completes;
  const Certificate certificate = prove(plan, analysis, false, completes);
  for (std::size_t id = 0; id < completes.size(); ++id) {
    const proof::StepRef& ref = analysis.steps[id];
    plan.ranks[static_cast<std::size_t>(ref.rank)].steps[static_cast<std::size_t>(ref.index)].completes = completes[id];
  }
  return certificate;
}

}  // namespace tacc
