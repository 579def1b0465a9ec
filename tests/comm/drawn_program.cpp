#include "drawn_program.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/types.hpp"
#include "support/collective_contract.hpp"

namespace tacc::test {
namespace {

constexpr std::size_t mostBytes = 96 << 10;  // of `count` elements
constexpr std::size_t guardBytes = 64;
constexpr std::byte guard{0xA5};
constexpr std::array types{taccInt8, taccUint8, taccInt32, taccUint64, taccFloat32, taccFloat64};
constexpr std::array ops{taccSum, taccProd, taccMax, taccMin};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t limit) { return random_() % limit; }
  int rank(int ranks) { return static_cast<int>(below(static_cast<std::size_t>(ranks))); }
  bool oneIn(std::size_t times) { return below(times) == 0; }
  /// Bytes: mostly what fits a note or a line, else an eager slot, sometimes what only a plan can carry.
  std::size_t bytes() {
    const std::size_t kind = below(20);
    const std::size_t most = kind < 8 ? 8 : kind < 13 ? 48 : kind < 16 ? 1000 : kind < 18 ? 9000 : mostBytes;
    return below(most + 1);
  }

 private:
  std::mt19937_64 random_;
};

std::uint64_t mix(std::uint64_t seed, std::uint64_t more) {
  seed = (seed ^ more) * 0x9E37'79B9'7F4A'7C15ULL;
  return seed ^ seed >> 29;
}

/// Element i of what `rank` sends in the call of `seed`: small, so that all types hold all results exactly.
class Values {
 public:
  Values(std::uint64_t seed, int rank, taccRedOp_t op)
      : base_(mix(seed, static_cast<std::uint64_t>(rank) + 1) % 1'000'003), period_(op == taccProd ? 2 : 7) {}
  int operator[](std::size_t i) const { return 1 + static_cast<int>((base_ + i * 5 + i / 8) % period_); }

 private:
  std::uint64_t base_;
  std::uint64_t period_;
};

int reduce(int a, int b, taccRedOp_t op) {
  return op == taccSum ? a + b : op == taccProd ? a * b : op == taccMax ? std::max(a, b) : std::min(a, b);
}

/// Calls `work` with a value of the type.
template <class Work>
auto withType(taccDataType_t type, const Work& work) {
  switch (type) {
    case taccInt8:
      return work(std::int8_t{});
    case taccUint8:
      return work(std::uint8_t{});
    case taccInt32:
      return work(std::int32_t{});
    case taccUint64:
      return work(std::uint64_t{});
    case taccFloat32:
      return work(float{});
    default:
      return work(double{});
  }
}

template <class ValueAt>
void write(std::byte* to, taccDataType_t type, std::size_t count, const ValueAt& valueAt) {
  withType(type, [&](auto sample) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<decltype(sample)>(valueAt(i));
      std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
    return 0;
  });
}

/// "" or which element is wrong.
template <class ValueAt>
std::string compare(const std::byte* from, taccDataType_t type, std::size_t count, const ValueAt& valueAt) {
  return withType(type, [&](auto sample) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto right = static_cast<decltype(sample)>(valueAt(i));
      std::memcpy(&sample, from + i * sizeof sample, sizeof sample);
      if (sample != right) return fmt::format("element {} is {} and not {}", i, +sample, +right);
    }
    return std::string();
  });
}

std::string checkGuard(const std::byte* end) {
  return std::all_of(end, end + guardBytes, [](std::byte b) { return b == guard; }) ? "" : "written past the end";
}

/// Holds a rank up, so that the others get ahead. Where one rank is slow all the time the rings of the others fill.
class Lateness {
 public:
  Lateness(std::uint64_t seed, int rank, int ranks)
      : draw_(mix(seed, 1000 + static_cast<std::uint64_t>(rank))), slow_(Draw(seed).rank(ranks) == rank) {}
  void beLate() {
    if (draw_.oneIn(slow_ ? 4 : 40))
      for (std::size_t i = draw_.below(8); i > 0; --i) sched_yield();
    if (draw_.oneIn(slow_ ? 40 : 400)) {
      const timespec pause{0, static_cast<long>(draw_.below(300'000))};
      nanosleep(&pause, nullptr);
    }
  }

 private:
  Draw draw_;
  bool slow_;
};

/// One rank's part of one call.
struct Part {
  const DrawnCall& call;
  std::uint64_t seed;  // of the call's data
  taccComm_t comm;
  int rank, ranks;
  std::byte* sent;
  std::byte* received;

  std::string run() { return call.messages.empty() ? runCollective() : runMessages(); }

 private:
  std::size_t size() const { return sizeOf(call.type); }
  std::size_t all() const { return call.count * static_cast<std::size_t>(ranks); }
  Values valuesOf(int from) const { return {seed, from, isReduction(call.collective) ? call.op : taccSum}; }
  std::string error(taccResult_t result) const { return result == taccSuccess ? "" : taccGetLastError(comm); }

  std::string runCollective() {
    const Contract contract{call.collective, rank, ranks, call.root, call.count};
    const std::size_t in = contract.sent(), out = contract.receives() ? contract.received() : 0;
    // In place the smaller of the two lies in the larger one, where it belongs.
    if (call.inPlace && contract.canBeInPlace()) {
      std::byte* const buffer = contract.sendsAll() && !contract.receivesAll() ? sent : received;
      sent = buffer + contract.placeOfSent() * size();
      received = buffer + contract.placeOfReceived() * size();
    }
    std::byte* const end = received + out * size();
    write(sent, call.type, in, [v = valuesOf(rank)](std::size_t i) { return v[i]; });
    // In place among other blocks what follows is the rank's own input.
    const bool guarded = end < sent || end >= sent + in * size();
    if (guarded) std::fill_n(end, guardBytes, guard);
    if (const std::string text = error(contract.call(sent, received, call.type, call.op, comm)); !text.empty())
      return text;
    if (out == 0) return "";
    const std::string wrong =
        compare(received, call.type, out, [&](std::size_t i) { return combined(contract.origin(i)); });
    return wrong.empty() && guarded ? checkGuard(end) : wrong;
  }

  int combined(const Origin& from) const {
    int result = valuesOf(from.first)[from.index];
    for (int other = from.first + 1; other < from.behind; ++other)
      result = reduce(result, valuesOf(other)[from.index], call.op);
    return result;
  }

  std::string runMessages() {
    std::byte* out = sent;
    std::byte* in = received;
    std::size_t count = 0;
    for (const DrawnMessage& m : call.messages) count += m.to == rank ? m.count : 0;
    std::byte* const end = received + count * size();
    std::fill_n(end, guardBytes, guard);
    taccResult_t result = call.grouped ? taccGroupStart() : taccSuccess;
    std::uint64_t data = seed;
    for (const DrawnMessage& m : call.messages) {
      ++data;
      if (m.from == rank) {
        write(out, call.type, m.count, [v = Values(data, rank, taccSum)](std::size_t i) { return v[i]; });
        if (result == taccSuccess) result = taccSend(out, m.count, call.type, m.to, comm, nullptr);
        out += m.count * size();
      }
      if (m.to == rank) {
        if (result == taccSuccess) result = taccRecv(in, m.count, call.type, m.from, comm, nullptr);
        in += m.count * size();
      }
    }
    if (call.grouped && result == taccSuccess) result = taccGroupEnd();
    if (result != taccSuccess) return error(result);
    if (std::string wrong = checkGuard(end); !wrong.empty()) return wrong;
    in = received;
    data = seed;
    for (const DrawnMessage& m : call.messages) {
      ++data;
      if (m.to != rank) continue;
      const std::string wrong =
          compare(in, call.type, m.count, [v = Values(data, m.from, taccSum)](std::size_t i) { return v[i]; });
      if (!wrong.empty()) return fmt::format("from rank {}: {}", m.from, wrong);
      in += m.count * size();
    }
    return "";
  }
};

DrawnCall drawCall(Draw& draw, int ranks) {
  DrawnCall call{};
  call.type = types[draw.below(types.size())];
  call.op = ops[draw.below(ops.size())];
  call.count = draw.bytes() / sizeOf(call.type);
  call.root = draw.rank(ranks);
  call.inPlace = draw.oneIn(3);
  call.library = draw.oneIn(3);
  if (draw.oneIn(8)) {
    call.grouped = draw.oneIn(2);
    for (std::size_t left = call.grouped ? 1 + draw.below(2 * static_cast<std::size_t>(ranks)) : 1; left > 0; --left) {
      const int from = draw.rank(ranks);
      const int to = (from + 1 + draw.rank(ranks - 1)) % ranks;
      call.messages.push_back({from, to, std::min<std::size_t>(draw.bytes(), mostBytes / 4) / sizeOf(call.type)});
    }
  } else {
    call.collective = static_cast<Collective>(draw.below(static_cast<std::size_t>(Collective::barrier) + 1));
  }
  return call;
}

}  // namespace

std::vector<DrawnCall> drawProgram(std::uint64_t seed, int ranks) {
  Draw draw(seed);
  std::vector<DrawnCall> calls;
  const std::size_t length = 10 + draw.below(150);
  while (calls.size() < length) {
    DrawnCall call = drawCall(draw, ranks);
    std::size_t times = 1;
    if (draw.oneIn(12)) {
      constexpr std::array rooted{Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter};
      call.messages.clear();
      call.collective = rooted[draw.below(rooted.size())];
      call.count = (1 + draw.below(draw.oneIn(2) ? 8 : 64)) / sizeOf(call.type);
      times = 1 + draw.below(40);
    }
    calls.insert(calls.end(), times, call);
  }
  return calls;
}

std::string describe(const DrawnCall& call) {
  if (!call.messages.empty()) return fmt::format("{} messages of {}", call.messages.size(), nameOf(call.type));
  return fmt::format("{} of {} {}, op {}, root {}{}{}", nameOf(call.collective), call.count, nameOf(call.type),
                     static_cast<int>(call.op), call.root, call.inPlace ? ", in place" : "",
                     call.library ? ", library memory" : "");
}

DrawnBuffers::DrawnBuffers(int ranks) {
  const std::size_t bytes = (static_cast<std::size_t>(ranks) + 2) * mostBytes + guardBytes;
  for (int i = 0; i < 2; ++i) {
    own_[i].resize(bytes);
    void* memory = nullptr;
    if (taccMemAlloc(&memory, bytes) != taccSuccess) std::abort();
    library_[i] = static_cast<std::byte*>(memory);
  }
}

DrawnBuffers::~DrawnBuffers() {
  for (std::byte* memory : library_) (void)taccMemFree(memory);
}

std::string runProgram(const std::vector<DrawnCall>& calls, std::uint64_t seed, Pace pace, taccComm_t comm, int rank,
                       int ranks, DrawnBuffers& buffers) {
  Lateness lateness(seed, rank, ranks);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (pace == Pace::drifting) lateness.beLate();
    const DrawnCall& call = calls[i];
    Part part{call, mix(seed, i), comm, rank, ranks, buffers.send(call.library), buffers.receive(call.library)};
    if (const std::string wrong = part.run(); !wrong.empty())
      return fmt::format("program {} on {} ranks, rank {}, call {}, {}: {}", seed, ranks, rank, i, describe(call),
                         wrong);
  }
  return "";
}

}  // namespace tacc::test
