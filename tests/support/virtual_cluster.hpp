// A virtual cluster for tests: hosts with networks, names, IPC and /dev/shm of their own, on this machine.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace tacc::test {

/// A cluster of its own for as long as it lives, or until this process is killed. Hosts are 1, 2, ...; host i has the
/// address 10.77.0.i and the name tacc<i>. Needs the path of tools/cluster in the environment variable
/// VIRTUAL_CLUSTER_TOOL, which Meson sets. A test whose machine has no namespaces skips itself:
///   if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
class VirtualCluster {
 public:
  /// Why there can be none here; "" if there can.
  static const std::string& obstacle() {
    static const std::string why = [] {
      const Output output = capture(fmt::format("'{}' check 2>&1", tool()));
      return output.status == 0 ? "" : output.text;
    }();
    return why;
  }
  static bool available() { return obstacle().empty(); }

  /// `hosts` per supernode; rates in Mbit/s, 0 for no limit. Throws std::runtime_error.
  explicit VirtualCluster(int supernodes, int hosts, int hostMbit = 0, int uplinkMbit = 0)
      : hosts_(supernodes * hosts) {
    static int count = 0;
    name_ = fmt::format("test.{}.{}", ::getpid(), ++count);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    const std::string program = tool();
    const std::string shape = fmt::format("{},{},{},{}", supernodes, hosts, hostMbit, uplinkMbit);
    const pid_t parent = ::getpid();
    keeper_ = ::fork();
    if (keeper_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      ::dup2(ends[1], 1);
      if (::getppid() == parent)
        ::execl(program.c_str(), program.c_str(), "--name", name_.c_str(), "hold", shape.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    FILE* lines = ::fdopen(ends[0], "r");
    for (int pid = 0; static_cast<int>(holders_.size()) < hosts_ && std::fscanf(lines, "%d", &pid) == 1;)
      holders_.push_back(pid);
    std::fclose(lines);
    if (static_cast<int>(holders_.size()) == hosts_) return;
    end();
    throw std::runtime_error("no virtual cluster; see standard error");
  }
  VirtualCluster(const VirtualCluster&) = delete;
  VirtualCluster& operator=(const VirtualCluster&) = delete;
  /// Takes it down, with all processes on its hosts. Not in forked children, which only have a copy.
  ~VirtualCluster() {
    if (::getpid() == owner_) end();
  }

  int hosts() const { return hosts_; }
  /// For `tools/cluster --name`.
  const std::string& name() const { return name_; }
  static std::string address(int host) { return fmt::format("10.77.0.{}", host); }

  /// Moves this thread, and those that it makes from now on, to the host. For a forked child. Throws
  /// std::runtime_error.
  void enter(int host) const {
    // A thread that shares its directory with others, such as ThreadSanitizer's own, cannot enter a mount namespace.
    if (::unshare(CLONE_FS) != 0) throw std::runtime_error("cannot have a directory of its own");
    const int holder = holders_.at(static_cast<size_t>(host - 1));
    // All are opened before the first is entered, as /proc is to be that of the parent until then.
    std::vector<int> namespaces;
    for (const char* kind : {"net", "uts", "ipc", "mnt"})
      namespaces.push_back(::open(fmt::format("/proc/{}/ns/{}", holder, kind).c_str(), O_RDONLY | O_CLOEXEC));
    const std::string directory = currentDirectory();
    for (const int descriptor : namespaces) {
      if (::setns(descriptor, 0) != 0) throw std::runtime_error(fmt::format("cannot enter host {}", host));
      ::close(descriptor);
    }
    if (::chdir(directory.c_str()) != 0) throw std::runtime_error("cannot return to " + directory);
  }

  /// Pulls the host's cable out at the switch: what it sends and what is sent to it is lost, and nobody is told.
  void unplug(int host) const { control("unplug", host); }
  void plug(int host) const { control("plug", host); }
  /// Changes the rate of a supernode's uplink, which has a limit, while it is used. Supernodes are 1, 2, ...
  void limitUplink(int supernode, int mbit) const { control(fmt::format("limit leaf{}", supernode).c_str(), mbit); }

 private:
  struct Output {
    int status;
    std::string text;
  };

  static std::string tool() {
    const char* path = std::getenv("VIRTUAL_CLUSTER_TOOL");
    if (path == nullptr) throw std::runtime_error("VIRTUAL_CLUSTER_TOOL is not set");
    return path;
  }

  static Output capture(const std::string& command) {
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    char bytes[512];
    for (size_t n; (n = std::fread(bytes, 1, sizeof(bytes), pipe)) > 0;) text.append(bytes, n);
    return {::pclose(pipe), text};
  }

  static std::string currentDirectory() {
    char path[4096] = "/";
    return ::getcwd(path, sizeof(path)) != nullptr ? path : "/";
  }

  void control(const char* what, int number) const {
    const Output output = capture(fmt::format("'{}' --name {} {} {} 2>&1", tool(), name_, what, number));
    if (output.status != 0) throw std::runtime_error(output.text);
  }

  void end() {
    ::kill(keeper_, SIGTERM);
    ::waitpid(keeper_, nullptr, 0);
  }

  pid_t owner_ = ::getpid();
  int hosts_;
  std::string name_;
  pid_t keeper_ = -1;
  std::vector<pid_t> holders_;
};

/// Runs body(rank) in one forked process per rank, on the hosts given by rank. True if all returned true; when one does
/// not, the others run to their end.
inline bool runRanks(const VirtualCluster& cluster, const std::vector<int>& hosts,
                     const std::function<bool(int)>& body) {
  std::vector<ChildProcess> ranks;
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank)
    ranks.emplace_back([&, rank] {
      cluster.enter(hosts[static_cast<size_t>(rank)]);
      return body(rank);
    });
  bool good = true;
  for (ChildProcess& rank : ranks) good = rank.wait() == 0 && good;
  return good;
}

}  // namespace tacc::test
