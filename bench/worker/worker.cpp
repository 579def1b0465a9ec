#include "worker/worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "worker/element.hpp"

namespace tacc::bench {
namespace {

/// Slots start on cache lines, as nothing else would be fair to the small sizes.
constexpr size_t slotAlignment = 64;

std::string argument(const std::string& line) { return line.substr(line.find(' ') + 1); }

std::string hostName() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return std::string(name).substr(0, std::string(name).find('.'));
}

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

Worker::~Worker() { release(); }

void Worker::release() {
  for (char** pool : {&sendPool_, &recvPool_})
    if (*pool != nullptr) contestant_.release(std::exchange(*pool, nullptr), poolBytes_);
}

bool Worker::serve() {
  try {
    channel_.send(fmt::format("hello {} {} {} {}", contestant_.rank(), ::getpid(), hostName(), contestant_.secret()));
    while (const auto line = channel_.receive()) channel_.send("ok " + obey(*line));
    return true;
  } catch (const std::exception& error) {
    try {
      channel_.send("error " + oneLine(error.what()));
    } catch (const std::exception&) {
      // The coordinator has gone; there is nobody to tell.
    }
    return false;
  }
}

std::string Worker::obey(const std::string& line) {
  const std::string command = line.substr(0, line.find(' '));
  if (command == joinCommand) return contestant_.join(argument(line)), "";
  if (command == shareCommand) return contestant_.share(argument(line));
  if (command == allocateCommand) return allocate(argument(line)), "";
  if (command == prepareCommand) return prepare(Task::decode(line));
  if (command == timeCommand) return time(Block::decode(line)).encode();
  throw std::invalid_argument("unexpected command \"" + line + "\"");
}

void Worker::allocate(const std::string& arguments) {
  release();
  std::istringstream words(arguments);
  bool smallPages = false;
  if (!(words >> poolBytes_ >> smallPages)) throw std::invalid_argument("cannot allocate \"" + arguments + "\"");
  sendPool_ = static_cast<char*>(contestant_.allocate(poolBytes_, smallPages));
  recvPool_ = static_cast<char*>(contestant_.allocate(poolBytes_, smallPages));
}

std::string Worker::prepare(const Task& task) {
  const int variants = contestant_.variants(task);
  if (variants == 0) return "0";
  task_ = task;
  shape_ = task.collective->shape(task.count, contestant_.ranks());
  const size_t bytes = std::max<size_t>(shape_.largest() * elementSize(task.type), 1);
  slotBytes_ = (bytes + slotAlignment - 1) / slotAlignment * slotAlignment;
  if (slotBytes_ > poolBytes_)
    throw std::invalid_argument(fmt::format("{} bytes do not fit into the pool of {}", bytes, poolBytes_));
  slotCount_ = std::min(poolBytes_ / slotBytes_, mostSlots);
  nextSlot_ = 0;
  const auto op = task.collective->reduces ? std::optional(task.op) : std::nullopt;
  pattern_ = std::make_unique<Pattern>(task.type, op, contestant_.ranks(), contestant_.rank());
  for (size_t slot = 0; slot < slotCount_; ++slot) fillInputs(sendPool_ + slot * slotBytes_, slot, false);
  return std::to_string(variants);
}

Timing Worker::time(const Block& block) {
  const auto aggregate = static_cast<size_t>(block.aggregate);
  const size_t steps = static_cast<size_t>(block.warmup + block.iterations) * aggregate;
  const size_t lastSlot = (nextSlot_ + steps - 1) % slotCount_;
  // Broken results of the timed calls themselves must not hide behind right ones of earlier calls.
  const bool checkTimed = block.check && !block.inPlace && contestant_.computesResult();
  if (checkTimed) std::memset(recvPool_ + lastSlot * slotBytes_, 0xff, slotBytes_);
  if (block.inPlace)
    for (size_t slot = 0; slot < std::min(slotCount_, steps); ++slot) {
      const size_t index = (nextSlot_ + slot) % slotCount_;
      fillInputs(recvPool_ + index * slotBytes_, index, true);
    }

  Call call;
  const auto runNext = [&] {
    call = callAt(nextSlot_, block);
    if (++nextSlot_ == slotCount_) nextSlot_ = 0;
    contestant_.run(call);
  };
  const auto runIteration = [&] {
    if (aggregate == 1) return runNext();
    contestant_.beginGroup();
    for (size_t i = 0; i < aggregate; ++i) runNext();
    contestant_.endGroup();
  };
  contestant_.barrier();
  for (int i = 0; i < block.warmup; ++i) runIteration();
  contestant_.finish();
  contestant_.barrier();
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> ends(block.perCall ? static_cast<size_t>(block.iterations) : 0);
  const double cpuStart = contestant_.cpuSeconds();
  const auto start = Clock::now();
  if (block.perCall) {
    for (Clock::time_point& end : ends) {
      runIteration();
      end = Clock::now();
    }
  } else {
    for (int i = 0; i < block.iterations; ++i) runIteration();
  }
  contestant_.finish();
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  const double cpu = contestant_.cpuSeconds() - cpuStart;

  Timing timing;
  timing.seconds = elapsed.count() / block.iterations / block.aggregate;
  timing.cpuSeconds = cpu / block.iterations / block.aggregate;
  auto before = start;
  for (const Clock::time_point end : ends) {
    timing.calls.push_back(std::chrono::duration<double>(end - before).count() / block.aggregate);
    before = end;
  }
  // Before the barrier, which would be the last collective otherwise.
  timing.algorithm = contestant_.algorithm(call);
  contestant_.barrier();
  if (checkTimed) timing.wrong = countWrong(recvPool_ + lastSlot * slotBytes_, lastSlot);
  if (block.check && block.inPlace) timing.wrong = runAndCheckInPlace(block);
  return timing;
}

int64_t Worker::runAndCheckInPlace(const Block& block) {
  // The timed calls ran on the results of earlier ones, so a call on fresh inputs is what can be checked.
  fillInputs(recvPool_, 0, true);
  contestant_.run(callAt(0, block));
  contestant_.finish();
  const size_t offset = task_.collective->inPlace(shape_, contestant_.rank()).recv * elementSize(task_.type);
  return countWrong(recvPool_ + offset, 0);
}

void Worker::fillInputs(char* slot, size_t slotIndex, bool inPlace) const {
  const size_t bytes = elementSize(task_.type);
  const size_t offset = inPlace ? task_.collective->inPlace(shape_, contestant_.rank()).send : 0;
  pattern_->fill(slot + offset * bytes, shape_.sendCount, slotIndex * (slotBytes_ / bytes), contestant_.rank());
}

int64_t Worker::countWrong(const char* received, size_t slotIndex) const {
  const size_t bytes = elementSize(task_.type);
  const size_t base = slotIndex * (slotBytes_ / bytes);
  int64_t wrong = 0;
  for (const Segment& s : task_.collective->expected(shape_, contestant_.rank(), contestant_.ranks(), task_.root))
    wrong += pattern_->countWrong(received + s.begin * bytes, s.count, base + s.index, s.source);
  return wrong;
}

Call Worker::callAt(size_t slotIndex, const Block& block) const {
  char* recv = recvPool_ + slotIndex * slotBytes_;
  Call call{&task_, block.variant, sendPool_ + slotIndex * slotBytes_, recv};
  if (block.inPlace) {
    const size_t bytes = elementSize(task_.type);
    const InPlace places = task_.collective->inPlace(shape_, contestant_.rank());
    call.send = recv + places.send * bytes;
    call.recv = recv + places.recv * bytes;
  }
  return call;
}

int serveCoordinator(Contestant& contestant, const std::string& address) {
  try {
    Worker worker(contestant, Channel::connectTo(address));
    return worker.serve() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", contestant.rank(), error.what());
    return 1;
  }
}

}  // namespace tacc::bench
