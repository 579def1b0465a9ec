#include "worker/messages.hpp"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

#include "worker/element.hpp"

namespace tacc::bench {
namespace {

[[noreturn]] void rejectLine(const std::string& line) {
  throw std::invalid_argument("unexpected message \"" + line + "\"");
}

}  // namespace

std::string Task::encode() const {
  return fmt::format("{} {} {} {} {} {}", prepareCommand, collective->name, typeName(type), opName(op), root, count);
}

Task Task::decode(const std::string& line) {
  std::istringstream in(line);
  std::string command, collective, type, op;
  Task task;
  if (!(in >> command >> collective >> type >> op >> task.root >> task.count)) rejectLine(line);
  const auto typeFound = typeFromName(type);
  const auto opFound = opFromName(op);
  task.collective = findCollective(collective);
  if (task.collective == nullptr || !typeFound || !opFound) rejectLine(line);
  task.type = *typeFound;
  task.op = *opFound;
  return task;
}

std::string Block::encode() const {
  return fmt::format("{} {:d} {} {} {} {:d} {} {:d}", timeCommand, inPlace, variant, warmup, iterations, check,
                     aggregate, perCall);
}

Block Block::decode(const std::string& line) {
  std::istringstream in(line);
  std::string command;
  Block block;
  if (!(in >> command >> block.inPlace >> block.variant >> block.warmup >> block.iterations >> block.check >>
        block.aggregate >> block.perCall))
    rejectLine(line);
  if (block.iterations < 1 || block.warmup < 0 || block.aggregate < 1) rejectLine(line);
  return block;
}

std::string Timing::encode() const {
  std::string text =
      fmt::format("{:.9e} {:.9e} {} {}", seconds, cpuSeconds, wrong, algorithm.empty() ? "-" : algorithm);
  for (const double call : calls) text += fmt::format(" {:.4e}", call);
  return text;
}

Timing Timing::decode(const std::string& line) {
  std::istringstream in(line);
  Timing timing;
  if (!(in >> timing.seconds >> timing.cpuSeconds >> timing.wrong >> timing.algorithm)) rejectLine(line);
  if (timing.algorithm == "-") timing.algorithm.clear();
  for (double call = 0; in >> call;) timing.calls.push_back(call);
  return timing;
}

}  // namespace tacc::bench
