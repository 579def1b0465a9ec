// PyTorch's conv2d as a contestant: tensors in NCHW before and after, forward. It runs in a Python of its own, which
// stays for all problems, takes the time of each run itself, and shares the tensors through a file in memory.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "compute/conv_problem.hpp"
#include "support/process.hpp"

namespace tacc::bench {
namespace {

/// Answers a line for each line. Lines are: prepare FILE and seventeen numbers; run; result.
constexpr const char* script = R"(
import os, sys, time
import torch
channel = os.fdopen(int(sys.argv[1]), 'r+b', buffering=0)
def answer(text): channel.write((text + '\n').encode())
answer('PyTorch ' + torch.__version__)
for line in iter(channel.readline, b''):
    words = line.decode().split()
    if words[0] == 'prepare':
        n, c, h, w, k, r, s, *ways, groups, oh, ow, threads = map(int, words[2:])
        stride, pad, dilation = ways[0:2], ways[2:4], ways[4:6]
        torch.set_num_threads(threads)
        sizes = [n * c * h * w, k * (c // groups) * r * s, n * k * oh * ow]
        floats = torch.from_file(words[1], shared=True, size=sum(sizes), dtype=torch.float32)
        source, weights, target = floats.split(sizes)
        source, weights = source.clone().view(n, c, h, w), weights.clone().view(k, c // groups, r, s)
        answer('ready')
    elif words[0] == 'run':
        with torch.inference_mode():
            wall, cpu = time.perf_counter(), time.thread_time()
            output = torch.nn.functional.conv2d(source, weights, None, stride, pad, dilation, groups)
            cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        answer(f'{wall} {cpu}')
    elif words[0] == 'result':
        target.copy_(output.reshape(-1))
        answer('there')
)";

/// The Python that has PyTorch: Debian's, if it is there.
std::string python() { return std::filesystem::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3"; }

class Server {
 public:
  Server() : log_("pytorch") {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
      throw std::system_error(errno, std::generic_category(), "socketpair");
    }
    process_ = std::make_unique<tools::Process>(
        std::vector<std::string>{python(), "-c", script, std::to_string(ends[1])}, log_);
    ::close(ends[1]);
    descriptor_ = ends[0];
    name_ = receive();
  }
  ~Server() { ::close(descriptor_); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& name() const { return name_; }
  std::string ask(const std::string& line) {
    const std::string text = line + "\n";
    if (::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL) < 0) failed();
    return receive();
  }

 private:
  std::string receive() {
    std::string line;
    for (char c = 0; ::read(descriptor_, &c, 1) == 1;) {
      if (c == '\n') return line;
      line += c;
    }
    failed();
  }
  [[noreturn]] void failed() {
    process_->finish(std::chrono::steady_clock::now() + std::chrono::seconds(1));
    throw std::runtime_error("PyTorch (Debian: python3-torch) does not answer:\n" + log_.tail(500));
  }

  tools::MemoryFile log_;
  std::unique_ptr<tools::Process> process_;
  int descriptor_ = -1;
  std::string name_;
};

/// Started with the first problem.
Server& server() {
  static Server one;
  return one;
}

class PytorchContestant final : public ConvContestant {
 public:
  PytorchContestant(const ConvProblem& problem, int threads)
      : problem_(problem), file_("tensors"), bytes_((sourceFloats() + problem.resultSize()) * sizeof(float)) {
    if (::ftruncate(file_.descriptor(), static_cast<off_t>(bytes_)) != 0) {
      throw std::system_error(errno, std::generic_category(), "cannot make room for PyTorch's tensors");
    }
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.descriptor(), 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    floats_ = static_cast<float*>(memory);
    std::copy_n(problem.weights.data(), problem.weights.size(),
                std::copy_n(problem.input.data(), problem.input.size(), floats_));
    const tools::Layer& l = problem.layer;
    server().ask(fmt::format("prepare /proc/{}/fd/{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", ::getpid(),
                             file_.descriptor(), problem.batch, l.inChannels, l.height, l.width, l.outChannels,
                             l.kernel.height, l.kernel.width, l.stride.height, l.stride.width, l.pad.height,
                             l.pad.width, l.dilation.height, l.dilation.width, l.groups, l.outHeight(), l.outWidth(),
                             threads));
  }
  ~PytorchContestant() override { ::munmap(floats_, bytes_); }

  void run() override {
    const std::string answer = server().ask("run");
    char* rest = nullptr;
    time_.wall = std::strtod(answer.c_str(), &rest);
    time_.processor = std::strtod(rest, nullptr);
  }
  RunTime ownTime() const override { return time_; }
  std::string implementation() const override { return server().name(); }
  std::vector<float> result() override {
    server().ask("result");
    return {floats_ + sourceFloats(), floats_ + sourceFloats() + problem_.resultSize()};
  }

 private:
  std::size_t sourceFloats() const { return problem_.input.size() + problem_.weights.size(); }

  const ConvProblem& problem_;
  tools::MemoryFile file_;
  std::size_t bytes_;
  float* floats_ = nullptr;
  RunTime time_;
};

}  // namespace

bool isPytorchThere() {
  const tools::MemoryFile log("pytorch");
  tools::Process process({python(), "-c", "import torch"}, log);
  process.finish(std::chrono::steady_clock::now() + std::chrono::minutes(1));
  return process.succeeded();
}

Contestants makePytorchContestants(const ConvProblem& problem, int threads, bool) {
  Contestants contestants;
  if (problem.pass == taccConvForward) contestants.push_back(std::make_unique<PytorchContestant>(problem, threads));
  return contestants;
}

}  // namespace tacc::bench
