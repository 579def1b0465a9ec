#include "algorithms/verifier.hpp"

#include <algorithm>

#include "algorithms/proof.hpp"
#include "core/error.hpp"

namespace tacc {

namespace proof {

void measureTraffic(const Plan& plan, const Exchange& exchange, Certificate& certificate) {
  const std::size_t p = plan.ranks.size();
  std::vector<std::uint64_t> sent(p, 0);
  std::vector<std::uint64_t> received(p, 0);
  for (const ProvenMessage& message : exchange.messages) {
    const auto blocks = static_cast<std::uint64_t>(exchange.steps[message.sendStep].step->blockCount);
    sent[message.sender] += blocks;
    received[message.receiver] += blocks;
  }
  certificate.messages = exchange.messages.size();
  certificate.maxBlocksSent = *std::max_element(sent.begin(), sent.end());
  certificate.maxBlocksReceived = *std::max_element(received.begin(), received.end());

  // Messages on the longest chain that ends in the step; `done` and `open`: in a rank's rounds before, and with this
  // one.
  std::vector<int> chain(exchange.steps.size(), 0);
  std::vector<int> done(p, 0);
  std::vector<int> open(p, 0);
  std::vector<int> roundOf(p, -1);
  for (const int id : exchange.byRound) {
    const StepRef& ref = exchange.steps[id];
    if (roundOf[ref.rank] != ref.step->round) {
      roundOf[ref.rank] = ref.step->round;
      done[ref.rank] = open[ref.rank];
    }
    int length = done[ref.rank];
    for (int i = exchange.firstReceived[id]; i < exchange.firstReceived[id + 1]; ++i) {
      length = std::max(length, chain[exchange.messages[exchange.received[i]].sendStep] + 1);
    }
    chain[id] = length;
    open[ref.rank] = std::max(open[ref.rank], length);
    certificate.longestChain = std::max(certificate.longestChain, length);
  }
}

}  // namespace proof

namespace {

/// Of a plan whose form is right; `completes`: as of proveDataflow().
Certificate prove(const Plan& plan, const proof::Exchange& exchange, bool inPlace, std::vector<bool>& completes) {
  const proof::Cells cells(plan, inPlace);
  Certificate certificate;
  completes = proof::proveDataflow(plan, exchange, cells, certificate);
  proof::measureTraffic(plan, exchange, certificate);
  certificate.overwrittenMessages = proof::countOverwritten(plan, exchange, cells);
  return certificate;
}

}  // namespace

Certificate verify(const Plan& plan, bool inPlace) {
  proof::checkForm(plan);
  const proof::Exchange exchange = proof::matchMessages(plan);
  std::vector<bool> completes;
  const Certificate certificate = prove(plan, exchange, inPlace, completes);
  for (std::size_t id = 0; id < completes.size(); ++id) {
    const proof::StepRef& ref = exchange.steps[id];
    if (ref.step->completes == completes[id]) continue;
    fail(taccInvalidArgument, "{}: {}", proof::placeOf(plan, ref.rank, static_cast<std::size_t>(ref.index)),
         completes[id] ? "combines the last contributions, and does not say so"
                       : "is said to combine the last contributions, and does not");
  }
  return certificate;
}

Certificate verifyAndComplete(Plan& plan) {
  proof::checkForm(plan);
  const proof::Exchange exchange = proof::matchMessages(plan);
  std::vector<bool> completes;
  const Certificate certificate = prove(plan, exchange, false, completes);
  for (std::size_t id = 0; id < completes.size(); ++id) {
    const proof::StepRef& ref = exchange.steps[id];
    plan.ranks[static_cast<std::size_t>(ref.rank)].steps[static_cast<std::size_t>(ref.index)].completes = completes[id];
  }
  return certificate;
}

}  // namespace tacc
