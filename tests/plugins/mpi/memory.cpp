// A program whose buffers are memory of MPI_Alloc_mem and of every kind that the C library has, at places that other
// blocks had before, and that forks between calls and while they go on. Each result is known.
//
//   memory SEED
#include <malloc.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

int rankHere = 0, ranks = 0;
bool isWrong = false;

void complain(const std::string& what) {
  std::printf("rank %d: %s\n", rankHere, what.c_str());
  isWrong = true;
}

/// What `rank` gives at place `i`.
int given(int rank, std::size_t i, int salt) {
  return static_cast<int>((rank * 31 + i * 7 + static_cast<unsigned>(salt) * 13) % 9973);
}

/// A buffer, by one of the ways to get one.
class Buffer {
 public:
  Buffer(std::mt19937& random, std::size_t numbers) : Buffer(static_cast<int>(random() % 7), numbers) {}
  /// 0: of MPI.
  Buffer(int way, std::size_t numbers) : numbers_(numbers), way_(way) {
    const std::size_t bytes = numbers * sizeof(int);
    void* memory = nullptr;
    switch (way_) {
      case 0:
        MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &memory);
        break;
      case 1:
        memory = std::calloc(numbers, sizeof(int));
        for (std::size_t i = 0; i < numbers; ++i)
          if (static_cast<int*>(memory)[i] != 0) complain("calloc gives memory that is not zero");
        break;
      case 2:
        if (posix_memalign(&memory, 256, bytes) != 0) memory = nullptr;
        break;
      case 3:  // grows by and by
        for (std::size_t now = bytes / 4 + 1; now < bytes; now += now / 2 + 1) {
          const std::size_t before = memory == nullptr ? 0 : malloc_usable_size(memory);
          memory = std::realloc(memory, now);
          if (before > 0 && std::string_view(static_cast<char*>(memory), 5) != "grown") complain("realloc loses data");
          std::memcpy(memory, "grown", 5);
        }
        memory = std::realloc(memory, bytes);
        break;
      case 4:
        memory = ::operator new(bytes);
        break;
      case 5:
        memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        break;
      default:
        memory = std::malloc(bytes);
    }
    data_ = static_cast<int*>(memory);
    if (memory == nullptr) complain("no memory");
  }
  ~Buffer() {
    if (way_ == 0)
      MPI_Free_mem(data_);
    else if (way_ == 4)
      ::operator delete(data_);
    else
      std::free(data_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  int* data() const { return data_; }
  void give(int rank, int salt) const {
    for (std::size_t i = 0; i < numbers_; ++i) data_[i] = given(rank, i, salt);
  }
  std::size_t numbers() const { return numbers_; }

 private:
  std::size_t numbers_;
  int way_;
  int* data_ = nullptr;
};

template <class Expected>
void check(const char* call, const Buffer& buffer, std::size_t numbers, const Expected& expected) {
  for (std::size_t i = 0; i < numbers; ++i) {
    if (buffer.data()[i] == expected(i)) continue;
    return complain(std::string(call) + " of " + std::to_string(numbers) + " gives " +
                    std::to_string(buffer.data()[i]) + " at " + std::to_string(i) + ", expected " +
                    std::to_string(expected(i)));
  }
}

/// A child that writes over all that it has of the buffers, and sees them as they were at the fork.
void forkChild(const std::vector<const Buffer*>& buffers) {
  std::fflush(stdout);
  std::vector<std::vector<int>> copies;
  for (const Buffer* buffer : buffers) copies.emplace_back(buffer->data(), buffer->data() + buffer->numbers());
  const pid_t child = fork();
  if (child == 0) {
    bool isAsItWas = true;
    for (std::size_t b = 0; b < buffers.size(); ++b)
      for (std::size_t i = 0; i < buffers[b]->numbers(); ++i) isAsItWas &= buffers[b]->data()[i] == copies[b][i];
    for (const Buffer* buffer : buffers) std::memset(buffer->data(), 0x55, buffer->numbers() * sizeof(int));
    _exit(isAsItWas ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) complain("a child sees other memory than its parent had");
}

void callOnce(std::mt19937& agreed, std::mt19937& own, int salt, const Buffer& send, const Buffer& receive,
              std::size_t numbers) {
  const int count = static_cast<int>(numbers), each = count / ranks,
            root = static_cast<int>(agreed() % static_cast<unsigned>(ranks));
  const auto size = static_cast<std::size_t>(each);
  const auto sum = [&](std::size_t i) {
    int all = 0;
    for (int r = 0; r < ranks; ++r) all += given(r, i, salt);
    return all;
  };
  const bool forks = own() % 6 == 0;
  const auto call = static_cast<unsigned>(agreed() % 9);
  send.give(rankHere, salt);
  if (forks && call < 8) forkChild({&send, &receive});
  switch (call) {
    case 0:
      MPI_Allreduce(send.data(), receive.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      return check("MPI_Allreduce", receive, numbers, sum);
    case 1:
      receive.give(rankHere, salt);
      MPI_Bcast(receive.data(), count, MPI_INT, root, MPI_COMM_WORLD);
      return check("MPI_Bcast", receive, numbers, [&](std::size_t i) { return given(root, i, salt); });
    case 2:
      MPI_Reduce(send.data(), receive.data(), count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
      if (rankHere == root) check("MPI_Reduce", receive, numbers, sum);
      return;
    case 3:
      MPI_Allgather(send.data(), each, MPI_INT, receive.data(), each, MPI_INT, MPI_COMM_WORLD);
      return check("MPI_Allgather", receive, size * static_cast<std::size_t>(ranks),
                   [&](std::size_t i) { return given(static_cast<int>(i / size), i % size, salt); });
    case 4:
      MPI_Alltoall(send.data(), each, MPI_INT, receive.data(), each, MPI_INT, MPI_COMM_WORLD);
      return check("MPI_Alltoall", receive, size * static_cast<std::size_t>(ranks), [&](std::size_t i) {
        return given(static_cast<int>(i / size), static_cast<std::size_t>(rankHere) * size + i % size, salt);
      });
    case 5:
      MPI_Gather(send.data(), each, MPI_INT, receive.data(), each, MPI_INT, root, MPI_COMM_WORLD);
      if (rankHere == root)
        check("MPI_Gather", receive, size * static_cast<std::size_t>(ranks),
              [&](std::size_t i) { return given(static_cast<int>(i / size), i % size, salt); });
      return;
    case 6:
      MPI_Scatter(send.data(), each, MPI_INT, receive.data(), each, MPI_INT, root, MPI_COMM_WORLD);
      return check("MPI_Scatter", receive, size,
                   [&](std::size_t i) { return given(root, static_cast<std::size_t>(rankHere) * size + i, salt); });
    case 7:
      MPI_Reduce_scatter_block(send.data(), receive.data(), each, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      return check("MPI_Reduce_scatter_block", receive, size,
                   [&](std::size_t i) { return sum(static_cast<std::size_t>(rankHere) * size + i); });
    default: {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Iallreduce(send.data(), receive.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
      if (forks && fork() == 0) _exit(0);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      while (forks && waitpid(-1, nullptr, 0) > 0) continue;
      return check("MPI_Iallreduce", receive, numbers, sum);
    }
  }
}

/// Buffers come and go; some serve many calls.
void run(unsigned seed) {
  std::mt19937 agreed(seed), own(seed * 1000 + static_cast<unsigned>(rankHere));
  std::vector<std::unique_ptr<Buffer>> others;  // so that places are not always the same
  for (int round = 0; round < 6; ++round) {
    const std::size_t most = 1000 + agreed() % (agreed() % 2 == 0 ? 30'000 : 400'000);
    const Buffer send(own, most), receive(own, most);
    for (int call = 0; call < 12; ++call)
      callOnce(agreed, own, round * 100 + call, send, receive, call % 3 == 0 ? most : 1 + agreed() % most);
    others.push_back(std::make_unique<Buffer>(own, 1 + own() % 100'000));
    others.back()->give(rankHere, round);
    if (own() % 3 == 0) others.erase(others.begin() + static_cast<std::ptrdiff_t>(own() % others.size()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Buffer early(3, 100'000);  // before MPI is there
  early.give(3, 4);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rankHere);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  run(argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 1);
  const Buffer late(1, 100'000);  // freed when MPI is not there any more
  late.give(1, 2);
  forkChild({&early, &late});
  int wrong = isWrong ? 1 : 0, all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  check("nothing", late, late.numbers(), [](std::size_t i) { return given(1, i, 2); });
  check("nothing", early, early.numbers(), [](std::size_t i) { return given(3, i, 4); });
  if (rankHere == 0 && all == 0) std::puts("all right");
  return all != 0 || isWrong ? 1 : 0;
}
