#include "easgd/center.hpp"

#include <chrono>
#include <utility>

#include "comm/bootstrap/unique_id.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"
#include "easgd/center_entry.hpp"
#include "easgd/center_server.hpp"
#include "easgd/mapped_center.hpp"
#include "easgd/remote_center.hpp"

namespace tacc {
namespace {

/// Asks now and then whether the process that keeps the center still lives: a system call for every exchange of a small
/// center would be a good part of it.
class KeeperWatch {
 public:
  KeeperWatch(CenterLink link, const std::shared_ptr<CenterMemory>& memory) : link_(std::move(link)), memory_(memory) {}

  void look() {
    if (memory_->isClosed()) failClosed();
    const auto now = Clock::now();
    if (now < next_) return;
    // Before it closes the connections, it says that it closes.
    if (hasEnded(link_.channel.fd())) {
      if (memory_->isClosed()) failClosed();
      link_.failEnded();
    }
    next_ = now + interval;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds interval{100};

  [[noreturn]] void failClosed() const {
    fail(taccRemoteError, "the center was destroyed by {}, which kept it", describePlace(link_.keeper, true));
  }

  CenterLink link_;
  std::shared_ptr<CenterMemory> memory_;
  Clock::time_point next_{};
};

std::unique_ptr<Center> mapCenter(CenterEntry entry, double timeout) {
  const CenterMemory::Shape shape{entry.seat.count, entry.seat.isLocked};
  auto memory = std::make_shared<CenterMemory>(CenterMemory::map(std::move(entry.memory), shape));
  memory->closeFd();
  auto watch = std::make_shared<KeeperWatch>(std::move(entry.link), memory);
  const auto look = [at = watch.get()] { at->look(); };
  return std::make_unique<MappedCenter>(std::move(memory), entry.seat.number, timeout, look, std::move(watch));
}

}  // namespace

KeptCenter keepCenter(std::size_t count, const float* initial, const CenterOptions& options) {
  taccUniqueId made = options.servesHosts ? makeUniqueId() : makeHostUniqueId();
  UniqueIdContents id = openUniqueId(made);
  id.purpose = IdPurpose::center;
  made = sealUniqueId(id);
  auto memory = std::make_shared<CenterMemory>(CenterMemory::create({count, options.isLocked ? 1U : 0U}, initial));
  auto server = std::make_shared<CenterServer>(*memory, id, options.timeout);
  return {std::make_unique<MappedCenter>(
              memory, 0, options.timeout, [] {}, std::move(server)),
          made};
}

std::unique_ptr<Center> connectCenter(const taccUniqueId& id, std::size_t count, const CenterOptions& options) {
  const UniqueIdContents contents = openUniqueId(id, IdPurpose::center);
  const bool maps = checkEnvironment().segments != SegmentSource::off;
  CenterEntry entry = enterCenter(contents, count, maps, options.timeout);
  if (entry.seat.hasMemory != 0) return mapCenter(std::move(entry), options.timeout);
  return std::make_unique<RemoteCenter>(std::move(entry), options.timeout);
}

}  // namespace tacc
