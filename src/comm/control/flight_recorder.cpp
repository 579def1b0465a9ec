#include "comm/control/flight_recorder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "core/log.hpp"
#include "engine/signature.hpp"

namespace tacc {
namespace {

constexpr std::size_t notesKept = 50;

int nextNumber() {
  static std::atomic<int> number{0};
  return number.fetch_add(1);
}

/// Failures to write are logged: a program does not end for a trace.
void writeFile(const std::string& name, const std::string& content, int rank) {
  // Made under another name, which must be new, and then moved: what stands at `name`, or a link there that leads
  // elsewhere, is replaced and never written to.
  const std::string part = fmt::format("{}.{}.part", name, ::getpid());
  (void)::unlink(part.c_str());  // of a process of the same number that was killed
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  std::FILE* file = fd >= 0 ? ::fdopen(fd, "w") : nullptr;
  const bool written = file != nullptr && std::fputs(content.c_str(), file) >= 0;
  const bool whole = file != nullptr && std::fclose(file) == 0 && written;
  if (whole && ::rename(part.c_str(), name.c_str()) == 0) return;
  log(LogLevel::warn, rank, "cannot write the trace {}: {}", name, std::strerror(errno));
  if (fd >= 0) (void)::unlink(part.c_str());
}

std::string escape(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '"' || c == '\\') safe += '\\';
    safe += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return safe;
}

}  // namespace

FlightRecorder::FlightRecorder(int rank, std::string file)
    : rank_(rank),
      file_(std::move(file)),
      number_(file_.empty() ? 0 : nextNumber()),
      flights_(file_.empty() ? logged : traced) {}

FlightRecorder::~FlightRecorder() { write(); }

void FlightRecorder::note(std::string text) {
  if (!isTraced()) return;
  notes_.push_back({next_, readTicks(), std::move(text)});
  if (notes_.size() > notesKept) notes_.pop_front();
}

void FlightRecorder::fail(taccResult_t result, const char* message) noexcept {
  if (std::exchange(hasFailed_, true)) return;
  try {
    failure_ = fmt::format("{}: {}", taccGetErrorString(result), message);
    write();
    if (!file_.empty() || !logs(LogLevel::warn)) return;
    std::string last;
    for (std::size_t i = oldest(); i < next_; ++i) last += (last.empty() ? "" : ", ") + nameOf(flightOf(i));
    log(LogLevel::warn, rank_, "{} (last operations: {}; TACC_TRACE=FILE writes the last {})", failure_, last, traced);
  } catch (const std::exception&) {
    // Out of memory: the error itself is on its way to the caller.
  }
}

std::string FlightRecorder::nameOf(const Flight& flight) const {
  return flight.signature == 0 ? std::string("sends and receives") : describeSignature(flight.signature);
}

std::string FlightRecorder::text() const {
  const TickRate::Scale scale = rate_.scale();
  std::string text = fmt::format("rank {}: the last {} of {} operations; start in s since 1970, duration in us\n",
                                 rank_, next_ - oldest(), next_);
  for (std::size_t i = oldest(); i < next_; ++i) {
    const Flight& flight = flightOf(i);
    const double start = scale.at(flight.start);
    const std::string took = flight.end == 0 ? std::string(hasFailed_ ? "failed" : "running")
                                             : fmt::format("{:.2f}", scale.at(flight.end) - start);
    text += fmt::format("{:>8} {:.6f} {:>12}  {}\n", i + 1, start * 1e-6, took, nameOf(flight));
  }
  for (const Note& note : notes_) text += fmt::format("in operation {}: {}\n", note.operation, note.text);
  return failure_.empty() ? text : text + failure_ + "\n";
}

std::string FlightRecorder::chromeTrace() const {
  const TickRate::Scale scale = rate_.scale();
  std::string events;
  for (std::size_t i = oldest(); i < next_; ++i) {
    const Flight& flight = flightOf(i);
    const double start = scale.at(flight.start);
    const double end = scale.at(flight.end == 0 ? readTicks() : flight.end);
    events +=
        fmt::format(R"({}{{"name":"{}","ph":"X","pid":{},"tid":0,"ts":{:.3f},"dur":{:.3f},"args":{{"operation":{}}}}})",
                    events.empty() ? "" : ",\n", nameOf(flight), rank_, start, end - start, i + 1);
  }
  for (const Note& note : notes_)
    events += fmt::format(R"({}{{"name":"{}","ph":"i","s":"p","pid":{},"tid":0,"ts":{:.3f}}})",
                          events.empty() ? "" : ",\n", escape(note.text), rank_, scale.at(note.at));
  if (!failure_.empty())
    events += fmt::format(R"({}{{"name":"{}","ph":"i","s":"p","pid":{},"tid":0,"ts":{:.3f}}})",
                          events.empty() ? "" : ",\n", escape(failure_), rank_, scale.at(readTicks()));
  return fmt::format("{{\"traceEvents\":[\n{}\n]}}\n", events);
}

void FlightRecorder::write() const noexcept {
  if (file_.empty()) return;
  try {
    const std::string name = fmt::format("{}.{}.rank{}", file_, number_, rank_);
    writeFile(name + ".txt", text(), rank_);
    writeFile(name + ".json", chromeTrace(), rank_);
  } catch (const std::exception&) {
    // As in fail().
  }
}

}  // namespace tacc
