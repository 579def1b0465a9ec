/// A peer for the tests of tacc_bench that behaves as its last argument says. Stands in for gloo_peer, with one rank.

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "support/process.hpp"
#include "worker/element.hpp"
#include "worker/worker.hpp"

namespace tacc::bench {
namespace {

class FaultyContestant : public Contestant {
 public:
  explicit FaultyContestant(std::string mode) : mode_(std::move(mode)) {}

  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  int variants(const Task&) const override { return mode_ == "absent" ? 0 : 1; }
  void barrier() override {}

  void join(const std::string&) override {
    if (mode_ == "refuse") throw std::runtime_error("nobody may join");
  }

  void run(const Call& call) override {
    if (mode_ == "throw") throw std::runtime_error("out of luck");
    if (mode_ == "die") std::abort();
    const size_t bytes = call.task->count * elementSize(call.task->type);
    std::memcpy(call.recv, call.send, bytes);
    if (mode_ == "wrong") std::memset(call.recv, 0x55, elementSize(call.task->type));
  }

 private:
  std::string mode_;
};

}  // namespace
}  // namespace tacc::bench

int main(int argc, char** argv) {
  tacc::tools::dieWithParent();
  tacc::bench::FaultyContestant contestant(argv[argc - 1]);
  return tacc::bench::serveCoordinator(contestant, argv[1]);
}
