// drawn SEED THREADS plain|persistent [trace]: a program that is drawn from the seed, on communicators that come of
// each other and go. Each rank tells a number that says what it received; with `trace` also in between. With more than
// one thread each of so many threads has a program and communicators of its own (MPI_THREAD_MULTIPLE).
#include "drawn.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tacc::test {
namespace {

constexpr int batches = 14;
constexpr std::size_t mostMembers = 7;

Member memberOf(MPI_Comm comm) {
  Member member{comm};
  if (!member.isPart()) return member;
  MPI_Comm_rank(comm, &member.rank);
  MPI_Comm_size(comm, &member.ranks);
  return member;
}

/// The places of every `step`-th rank, from the last one on, as a group.
MPI_Comm ofGroup(const Member& of, int step, bool isCalledByMembers) {
  MPI_Group all = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_group(of.comm, &all);
  std::vector<int> ranks;
  bool isIn = false;
  for (int r = of.ranks - 1; r >= 0; r -= step) ranks.push_back(r), isIn = isIn || r == of.rank;
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &part);
  if (!isCalledByMembers)
    MPI_Comm_create(of.comm, part, &made);
  else if (isIn)
    MPI_Comm_create_group(of.comm, part, 3, &made);
  MPI_Group_free(&part);
  MPI_Group_free(&all);
  return made;
}

/// One that comes of another one. The same draws on all ranks; only those that are part of `of` call.
Member derive(const Member& of, Draws& draws) {
  const int kind = draws.upTo(6), parts = 1 + draws.upTo(2), turned = draws.upTo(1);
  MPI_Comm made = MPI_COMM_NULL, whole = MPI_COMM_NULL;
  if (!of.isPart()) return {};
  const int color = of.rank % parts, key = turned != 0 ? -of.rank : of.rank;
  int sizes[] = {of.ranks}, isRound[] = {1}, kept[] = {1};
  switch (kind) {
    case 0:
      MPI_Comm_dup(of.comm, &made);
      break;
    case 1:
    case 2:
      MPI_Comm_split(of.comm, color, key, &made);
      break;
    case 3:
      MPI_Comm_split(of.comm, color == parts - 1 ? MPI_UNDEFINED : color, key, &made);
      break;
    case 4:
      return memberOf(ofGroup(of, parts, turned != 0));
    case 5:
      MPI_Comm_split_type(of.comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &made);
      break;
    default:
      MPI_Cart_create(of.comm, 1, sizes, isRound, 0, &whole);
      MPI_Cart_sub(whole, kept, &made);
      MPI_Comm_free(&whole);
  }
  return memberOf(made);
}

class Program {
 public:
  Program(unsigned seed, MPI_Comm world) : draws_(seed) {
    members_.push_back(memberOf(world));
    own_.seed(seed + 7777 * static_cast<unsigned>(members_[0].rank + 1));
    for (int i = 0; i < 2; ++i) members_.push_back(derive(members_[0], draws_));
  }
  ~Program() {
    for (std::size_t i = 1; i < members_.size(); ++i) end(i);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void runBatch() {
    Batch batch;
    for (int steps = 1 + draws_.upTo(9); steps > 0; --steps) {
      const Member& member = members_[static_cast<std::size_t>(draws_.upTo(static_cast<int>(members_.size()) - 1))];
      const bool isMessage = draws_.upTo(3) == 0;
      Draws draws(static_cast<unsigned>(draws_.upTo(1 << 30)));  // who is no part of it does not make them
      if (!member.isPart()) continue;
      isMessage ? drawMessages(member, draws, own_, batch, digest_) : drawCollective(member, draws, batch, digest_);
    }
    completeBatch(batch, 1 + draws_.upTo(2), own_, digest_);
    changeMembers();
  }
  std::uint64_t digest() const { return digest_.value(); }

 private:
  void changeMembers() {
    const bool ends = draws_.upTo(2) == 0 || members_.size() == mostMembers, comes = draws_.upTo(1) == 0;
    const auto ended = static_cast<std::size_t>(draws_.upTo(1000)),
               parent = static_cast<std::size_t>(draws_.upTo(1000));
    if (comes && members_.size() < mostMembers) members_.push_back(derive(members_[parent % members_.size()], draws_));
    if (!ends || members_.size() < 3) return;
    const std::size_t at = 1 + ended % (members_.size() - 1);
    end(at);
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void end(std::size_t at) {
    if (members_[at].isPart()) MPI_Comm_free(&members_[at].comm);
  }

  Draws draws_;
  std::mt19937 own_;
  Digest digest_;
  std::vector<Member> members_;
};

/// Open MPI 4.1 itself crashes where two threads are the first to make one with a topology.
void makeFirstTopology() {
  int size = 1, isRound = 0;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_SELF, 1, &size, &isRound, 0, &made);
  MPI_Comm_free(&made);
}

std::uint64_t runProgram(unsigned seed, MPI_Comm world) {
  Program program(seed, world);
  for (int batch = 0; batch < batches; ++batch) program.runBatch();
  return program.digest();
}

}  // namespace
}  // namespace tacc::test

int main(int argc, char** argv) {
  const unsigned seed = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 1;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  tacc::test::hasNoPersistentOnes = argc > 3 && std::string(argv[3]) == "plain";
  int provided = MPI_THREAD_SINGLE;
  if (threads > 1)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 4) {
    tacc::test::Digest::traceOfRank = rank;
    std::setvbuf(stderr, nullptr, _IOLBF, BUFSIZ);  // whole lines
  }
  std::vector<MPI_Comm> worlds(static_cast<std::size_t>(threads), MPI_COMM_NULL);
  for (MPI_Comm& world : worlds) MPI_Comm_dup(MPI_COMM_WORLD, &world);
  tacc::test::makeFirstTopology();
  std::vector<std::uint64_t> digests(worlds.size());
  std::vector<std::thread> running;
  for (std::size_t i = 1; i < worlds.size(); ++i)
    running.emplace_back(
        [&, i] { digests[i] = tacc::test::runProgram(seed + 1000 * static_cast<unsigned>(i), worlds[i]); });
  digests[0] = tacc::test::runProgram(seed, worlds[0]);
  for (std::thread& thread : running) thread.join();
  std::vector<std::uint64_t> all(worlds.size() * static_cast<std::size_t>(ranks));
  const auto count = static_cast<int>(digests.size());
  MPI_Gather(digests.data(), count, MPI_UINT64_T, all.data(), count, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  for (std::size_t i = 0; rank == 0 && i < all.size(); ++i)
    std::printf("received: %016llx\n", static_cast<unsigned long long>(all[i]));
  for (MPI_Comm& world : worlds) MPI_Comm_free(&world);
  MPI_Finalize();
  return 0;
}
