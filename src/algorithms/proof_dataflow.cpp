// Runs a plan on sets of contributions in the place of numbers.
#include <utility>

#include "algorithms/proof.hpp"
#include "algorithms/proof_values.hpp"
#include "core/error.hpp"

namespace tacc::proof {

Cells::Cells(const Plan& plan, bool inPlace) : plan_(plan), inPlace_(inPlace) {
  for (int rank = 0; rank < plan.request.ranks; ++rank) {
    const int output = count_;
    const int scratch = output + outputBlocksOf(plan, rank);
    const int input = scratch + plan.scratchBlocks;
    bases_.push_back({output, scratch, input});
    count_ = input + inputBlocksOf(plan, rank);
  }
}

int Cells::cellOf(int rank, Operand::Kind kind, int index) const noexcept {
  const Bases& bases = bases_[rank];
  if (kind == Operand::Kind::scratch) return bases.scratch + index;
  if (kind == Operand::Kind::output) return bases.output + index;
  const int alias = inPlace_ ? inPlaceOutputOf(plan_, rank, index) : -1;
  return alias >= 0 ? bases.output + alias : bases.input + index;
}

namespace {

class Dataflow {
 public:
  Dataflow(const Plan& plan, const PlanAnalysis& analysis, const Cells& cells)
      : plan_(plan),
        analysis_(analysis),
        cells_(cells),
        values_(plan.request.ranks),
        memory_(static_cast<std::size_t>(cells.count()), undefined),
        inTransit_(static_cast<std::size_t>(analysis.messageBlocks), undefined),
        completes_(analysis.steps.size(), false),
        writers_(static_cast<std::size_t>(cells.count()), Writer{-1, 0}) {
    for (int rank = 0; rank < plan.request.ranks; ++rank) {
      for (int block = 0; block < inputBlocksOf(plan, rank); ++block) {
        memory_[cells.cellOf(rank, Operand::Kind::input, block)] = values_.contribution(rank, block);
      }
    }
  }

  /// Steps of one rank and round stand together in byRound: first all writes are noted, then all steps run.
  void run() {
    const std::vector<int>& order = analysis_.byRound;
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      const StepRef& first = analysis_.steps[order[begin]];
      for (end = begin; end < order.size(); ++end) {
        const StepRef& ref = analysis_.steps[order[end]];
        if (ref.rank != first.rank || ref.step->round != first.step->round) break;
        noteWrites(order[end]);
      }
      for (std::size_t i = begin; i < end; ++i) runStep(order[i]);
    }
  }

  /// Of every step: whether it combines the last contributions.
  std::vector<bool> takeCompletions() { return std::move(completes_); }

  /// The digest of all orders; throws where an output is not what the collective promises.
  std::uint64_t checkOutputs(std::uint64_t& sequence) {
    std::vector<std::uint64_t> orders;
    std::uint64_t previous = 0;
    for (int rank = 0; rank < plan_.request.ranks; ++rank) {
      for (int block = 0; block < outputBlocksOf(plan_, rank); ++block) {
        const Value value = memory_[cells_.cellOf(rank, Operand::Kind::output, block)];
        checkOutput(rank, block, value);
        orders.push_back(values_.orderOf(value));
        // All blocks of a rank in one order count as one.
        const std::uint64_t own = values_.sequenceOf(value);
        if (block == 0 || own != previous) sequence = mix(sequence, own);
        previous = own;
      }
    }
    if (!isReduction(plan_.request.collective) || orders.empty()) return 0;  // an exscan of one rank has no outputs
    if (plan_.request.collective == Collective::allReduce) {
      checkSameOrder(orders);
      orders.resize(static_cast<std::size_t>(plan_.blocks));
    }
    bool allEqual = true;
    std::uint64_t digest = 0;
    for (const std::uint64_t order : orders) {
      allEqual = allEqual && order == orders.front();
      digest = mix(digest, order);
    }
    return allEqual ? orders.front() : digest;
  }

 private:
  struct Writer {
    int step;
    int offset;  // which of the step's blocks
  };

  template <class... Args>
  [[noreturn]] void reject(int step, fmt::format_string<Args...> format, Args&&... args) const {
    const StepRef& ref = analysis_.steps[step];
    fail(taccInvalidArgument, "{}: {}", placeOfStep(plan_, ref.rank, ref.index),
         fmt::format(format, std::forward<Args>(args)...));
  }

  static const char* bufferOf(const Operand& operand) {
    return operand.kind == Operand::Kind::input    ? "input"
           : operand.kind == Operand::Kind::output ? "output"
                                                   : "scratch";
  }

  bool writtenInRound(const Writer& writer, int round) const {
    return writer.step >= 0 && analysis_.steps[writer.step].step->round == round;
  }

  void noteWrites(int id) {
    const StepRef& ref = analysis_.steps[id];
    for (const Operand& operand : ref.step->destinations) {
      if (operand.kind == Operand::Kind::peer) continue;
      for (int i = 0; i < ref.step->blockCount; ++i) {
        Writer& writer = writers_[cells_.cellOf(ref.rank, operand.kind, operand.index + i)];
        if (writtenInRound(writer, ref.step->round)) {
          reject(id, "writes {} block {}, which step {} of the same round writes too", bufferOf(operand),
                 operand.index + i, analysis_.steps[writer.step].index);
        }
        writer = {id, i};
      }
    }
  }

  Value load(int id, const Operand& operand, int i, int& nextReceived) {
    const StepRef& ref = analysis_.steps[id];
    if (operand.kind == Operand::Kind::peer) {
      return inTransit_[analysis_.messages[analysis_.received[nextReceived++]].firstBlock + i];
    }
    const int cell = cells_.cellOf(ref.rank, operand.kind, operand.index + i);
    const Writer& writer = writers_[cell];
    if (writtenInRound(writer, ref.step->round) && (writer.step != id || writer.offset != i)) {
      reject(id, "reads {} block {}, which step {} of the same round writes", bufferOf(operand), operand.index + i,
             analysis_.steps[writer.step].index);
    }
    if (memory_[cell] == undefined) {
      reject(id, "reads {} block {} before anything was written there", bufferOf(operand), operand.index + i);
    }
    return memory_[cell];
  }

  void runStep(int id) {
    const Step& step = *analysis_.steps[id].step;
    int complete = 0;
    for (int i = 0; i < step.blockCount; ++i) {
      int nextReceived = analysis_.firstReceived[id];
      Value value = load(id, step.sources[0], i, nextReceived);
      if (step.sources.size() > 1) {
        value = values_.copyOf(value);
        for (std::size_t s = 1; s < step.sources.size(); ++s) {
          addSource(id, value, load(id, step.sources[s], i, nextReceived), i);
        }
        values_.round(value);
        complete += values_.contributors(value) == plan_.request.ranks ? 1 : 0;
      }
      store(id, i, value);
    }
    if (complete != 0 && complete != step.blockCount)
      reject(id,
             "combines the contributions of all ranks in some of its blocks only: these must be a step of their own");
    completes_[static_cast<std::size_t>(id)] = complete != 0;
  }

  void addSource(int id, Value sum, Value value, int i) {
    if (values_.blockOf(value) != values_.blockOf(sum)) {
      reject(id, "adds contributions to block {} and to block {} (its block {})", values_.blockOf(sum),
             values_.blockOf(value), i);
    }
    const int last = isPrefix(plan_.request.collective) ? values_.highest(sum) : -1;
    const int twice = values_.add(sum, value);
    if (twice >= 0) reject(id, "takes the contribution of rank {} to block {} twice", twice, values_.blockOf(sum));
    if (last > values_.lowest(value))
      reject(id, "combines the contribution of rank {} before that of rank {}", last, values_.lowest(value));
  }

  void store(int id, int i, Value value) {
    const StepRef& ref = analysis_.steps[id];
    int message = analysis_.firstSent[id];
    for (const Operand& operand : ref.step->destinations) {
      if (operand.kind == Operand::Kind::peer) {
        inTransit_[analysis_.messages[message++].firstBlock + i] = value;
      } else {
        memory_[cells_.cellOf(ref.rank, operand.kind, operand.index + i)] = value;
      }
    }
  }

  void checkOutput(int rank, int block, Value value) const {
    const PlanRequest& request = plan_.request;
    const Collective c = request.collective;
    const auto wrong = [&](const std::string& what) {
      fail(taccInvalidArgument, "plan {} {}: at the end output block {} of rank {} {}", plan_.algorithm, nameOf(c),
           block, rank, what);
    };
    if (value == undefined) wrong("was never written");
    // One contribution: of which rank, and which block of its input.
    const auto& [name, combines, send, receive] = shapeOf(c);
    const int source = receive.holds == Holds::all ? block : request.root;
    const int inputBlock = partitionOf(c) == Partition::split ? block : send.holds == Holds::one ? 0 : rank;
    if (values_.blockOf(value) != inputBlock) {
      wrong(fmt::format("holds input block {}, not {}", values_.blockOf(value), inputBlock));
    }
    if (isPrefix(c)) {
      const int behind = combines == Combines::upToOwn ? rank + 1 : rank;
      if (values_.contributors(value) != behind || values_.highest(value) >= behind)
        wrong(fmt::format("does not hold what ranks 0 to {} contribute", behind - 1));
    } else if (isReduction(c)) {
      for (int q = 0; q < request.ranks; ++q) {
        if (!values_.contains(value, q)) wrong(fmt::format("lacks the contribution of rank {}", q));
      }
    } else if (values_.contributors(value) != 1 || !values_.contains(value, source)) {
      wrong(fmt::format("does not hold what rank {} contributes", source));
    }
  }

  void checkSameOrder(const std::vector<std::uint64_t>& orders) const {
    const auto blocks = static_cast<std::size_t>(plan_.blocks);
    for (std::size_t i = blocks; i < orders.size(); ++i) {
      if (orders[i] == orders[i % blocks]) continue;
      fail(taccInvalidArgument,
           "plan {} allreduce: rank {} combines the contributions to block {} in another order than rank 0, so their "
           "results may differ in bits",
           plan_.algorithm, i / blocks, i % blocks);
    }
  }

  const Plan& plan_;
  const PlanAnalysis& analysis_;
  const Cells& cells_;
  Values values_;
  std::vector<Value> memory_;
  std::vector<Value> inTransit_;
  std::vector<bool> completes_;
  std::vector<Writer> writers_;
};

}  // namespace

std::vector<bool> proveDataflow(const Plan& plan, const PlanAnalysis& analysis, const Cells& cells,
                                Certificate& certificate) {
  Dataflow dataflow(plan, analysis, cells);
  dataflow.run();
  certificate.reductionOrder = dataflow.checkOutputs(certificate.reductionSequence);
  return dataflow.takeCompletions();
}

}  // namespace tacc::proof
