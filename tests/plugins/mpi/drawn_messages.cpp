// Messages of a drawn program beside its collectives: probed, persistent, long, from anybody, and as many as nobody
// knows.
#include <algorithm>
#include <array>
#include <memory>

#include "drawn.hpp"

namespace tacc::test {
namespace {

constexpr int longest = 60000;  // numbers; MPIs send such ones when they are asked for
constexpr int ringTag = 1;
/// Of messages that come from anybody, or that are started in any order: those of another step have another one.
int tagOf(int seed) { return 2 + seed % 30000; }

int lengthOf(int seed, int rank) {
  const auto mixed = static_cast<unsigned>(seed + 7919 * rank) * 2654435761U >> 8U;
  return static_cast<int>(mixed % (mixed % 3 == 0 ? longest : 40));
}
std::vector<int> numbersOf(int seed, int rank) {
  std::vector<int> numbers(static_cast<std::size_t>(lengthOf(seed, rank)));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = seed + 1000 * rank + static_cast<int>(i);
  return numbers;
}

void tellStatus(MPI_Status& status, Digest& digest) {
  int count = 0;
  MPI_Get_count(&status, MPI_INT, &count);
  digest.add(status.MPI_SOURCE);
  digest.add(status.MPI_TAG);
  digest.add(count);
  digest.mark("a message of rank " + std::to_string(status.MPI_SOURCE) + " with tag " + std::to_string(status.MPI_TAG) +
              ", " + std::to_string(count) + " numbers");
}

/// Each rank sends to the one that is `shift` further, and receives what may be as long as any.
void sendAround(const Member& member, int seed, int shift, bool isSynchronous, Batch& batch) {
  struct Buffers {
    std::vector<int> sent, received;
  };
  auto buffers = std::make_shared<Buffers>();
  buffers->sent = numbersOf(seed, member.rank);
  buffers->received.resize(longest, -1);
  const int to = (member.rank + shift) % member.ranks, from = (member.rank + member.ranks - shift) % member.ranks;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(buffers->received.data(), longest, MPI_INT, from, ringTag, member.comm, &request);
  batch.add(request, true);
  (isSynchronous ? MPI_Issend : MPI_Isend)(buffers->sent.data(), static_cast<int>(buffers->sent.size()), MPI_INT, to,
                                           ringTag, member.comm, &request);
  batch.add(request);
  batch.tell.emplace_back([buffers](Digest& digest) {
    digest.add(buffers->received.data(), longest * sizeof(int));
    digest.mark("what was sent around");
  });
}

/// The receiver looks what comes before it receives it.
void probe(const Member& member, int seed, int shift, std::mt19937& own, Digest& digest) {
  const std::vector<int> sent = numbersOf(seed, member.rank);
  const int tag = tagOf(seed);
  const int to = (member.rank + shift) % member.ranks;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(sent.data(), static_cast<int>(sent.size()), MPI_INT, to, tag, member.comm, &request);
  MPI_Status status;
  MPI_Message message = MPI_MESSAGE_NULL;
  int isThere = 0, count = 0;
  switch (own() % 4) {
    case 0:
      MPI_Probe(MPI_ANY_SOURCE, tag, member.comm, &status);
      break;
    case 1:
      while (isThere == 0) MPI_Iprobe(MPI_ANY_SOURCE, tag, member.comm, &isThere, &status);
      break;
    case 2:
      MPI_Mprobe(MPI_ANY_SOURCE, tag, member.comm, &message, &status);
      break;
    default:
      while (isThere == 0) MPI_Improbe(MPI_ANY_SOURCE, tag, member.comm, &isThere, &message, &status);
  }
  MPI_Get_count(&status, MPI_INT, &count);
  std::vector<int> received(static_cast<std::size_t>(count) + 1, -1);
  if (message == MPI_MESSAGE_NULL)
    MPI_Recv(received.data(), count, MPI_INT, status.MPI_SOURCE, tag, member.comm, &status);
  else
    MPI_Mrecv(received.data(), count, MPI_INT, &message, &status);
  tellStatus(status, digest);
  digest.add(received.data(), received.size() * sizeof(int));
  digest.mark("what was probed");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// Persistent messages, to be started beside persistent collectives.
void makePersistent(const Member& member, int seed, int shift, Batch& batch) {
  struct Buffers {
    std::array<int, 600> sent{}, received{};
  };
  auto buffers = std::make_shared<Buffers>();
  const int to = (member.rank + shift) % member.ranks, from = (member.rank + member.ranks - shift) % member.ranks;
  const auto fill = [buffers, seed, rank = member.rank](int round) {
    for (std::size_t i = 0; i < buffers->sent.size(); ++i)
      buffers->sent[i] = seed + 100 * rank + 10000 * round + static_cast<int>(i);
  };
  fill(0);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Recv_init(buffers->received.data(), 600, MPI_INT, from, tagOf(seed), member.comm, &request);
  batch.persistent.push_back({batch.add(request),
                              fill,
                              [buffers](Digest& digest) {
                                digest.add(buffers->received.data(), sizeof buffers->received);
                                digest.mark("a persistent message");
                              },
                              {}});
  MPI_Send_init(buffers->sent.data(), 600, MPI_INT, to, tagOf(seed), member.comm, &request);
  batch.persistent.push_back({batch.add(request), [](int) {}, [](Digest&) {}, {}});
}

/// Nobody knows who sends how often: whose messages have all been taken comes to a barrier, and receives until that is
/// over. What came is added up, as it comes in any order.
void meetInCrowd(const Member& member, int seed, std::mt19937& own, Digest& digest) {
  std::mt19937 equal(static_cast<unsigned>(seed + 13 * member.rank));
  const auto sends = equal() % 6;
  const int tag = tagOf(seed);
  std::vector<std::array<int, 3>> sent(sends);
  std::vector<MPI_Request> requests(sends, MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < sends; ++i) {
    sent[i] = {member.rank, seed, static_cast<int>(i)};
    MPI_Issend(sent[i].data(), 3, MPI_INT, static_cast<int>(equal() % static_cast<unsigned>(member.ranks)), tag,
               member.comm, &requests[i]);
  }
  MPI_Request barrier = MPI_REQUEST_NULL;
  std::int64_t sum = 0;
  for (int isOver = 0; isOver == 0;) {
    int isThere = 0, areTaken = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, member.comm, &isThere, &status);
    if (isThere != 0) {
      std::array<int, 3> received{};
      MPI_Recv(received.data(), 3, MPI_INT, status.MPI_SOURCE, tag, member.comm, MPI_STATUS_IGNORE);
      sum += 1000 * received[0] + received[2] + 1;
    }
    if (barrier != MPI_REQUEST_NULL) {
      own() % 2 == 0 ? MPI_Test(&barrier, &isOver, MPI_STATUS_IGNORE)
                     : MPI_Testall(1, &barrier, &isOver, MPI_STATUSES_IGNORE);
      continue;
    }
    MPI_Testall(static_cast<int>(sends), requests.data(), &areTaken, MPI_STATUSES_IGNORE);
    if (areTaken != 0) MPI_Ibarrier(member.comm, &barrier);
  }
  digest.add(sum);
  digest.mark("a crowd of " + std::to_string(member.ranks));
}

}  // namespace

void drawMessages(const Member& member, Draws& draws, std::mt19937& own, Batch& batch, Digest& digest) {
  const int kind = draws.upTo(3), seed = draws.upTo(100000), shift = draws.upTo(100), isSynchronous = draws.upTo(1);
  switch (kind) {
    case 0:
      return sendAround(member, seed, shift % member.ranks, isSynchronous != 0, batch);
    case 1:
      return probe(member, seed, shift % member.ranks, own, digest);
    case 2:
      return makePersistent(member, seed, shift % member.ranks, batch);
    default:
      return meetInCrowd(member, seed, own, digest);
  }
}

namespace {

/// All of `requests`, each call in a form of its own. `statuses` of those that were completed are kept.
void completeAll(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses, std::mt19937& own) {
  const auto count = static_cast<int>(requests.size());
  std::vector<bool> isDone(requests.size(), false);
  for (std::size_t i = 0; i < requests.size(); ++i) isDone[i] = requests[i] == MPI_REQUEST_NULL;
  std::vector<int> indices(requests.size());
  std::vector<MPI_Status> some(requests.size());
  const auto done = [&](int index, const MPI_Status& status) {
    const auto at = static_cast<std::size_t>(index);
    if (isDone[at]) complain("a request is completed twice");
    isDone[at] = true;
    statuses[at] = status;
  };
  while (std::ranges::find(isDone, false) != isDone.end()) {
    int index = MPI_UNDEFINED, flag = 0, number = 0;
    MPI_Status status;
    const auto one = static_cast<std::size_t>(own()) % requests.size();
    switch (own() % 8) {
      case 0:
        MPI_Waitany(count, requests.data(), &index, &status);
        if (index == MPI_UNDEFINED) complain("nothing is left for MPI_Waitany");
        done(index, status);
        break;
      case 1:
        MPI_Testany(count, requests.data(), &index, &flag, &status);
        if (flag != 0) done(index, status);
        break;
      case 2:
      case 3:
        (own() % 2 == 0 ? MPI_Testsome : MPI_Waitsome)(count, requests.data(), &number, indices.data(), some.data());
        for (int i = 0; i < number; ++i) done(indices[static_cast<std::size_t>(i)], some[static_cast<std::size_t>(i)]);
        break;
      case 4:
        if (isDone[one]) break;
        MPI_Wait(&requests[one], &status);
        done(static_cast<int>(one), status);
        break;
      case 5:
        if (isDone[one]) break;
        MPI_Request_get_status(requests[one], &flag, &status);
        MPI_Test(&requests[one], &number, &status);
        if (flag != 0 && number == 0) complain("a request that was complete is not");
        if (number != 0) done(static_cast<int>(one), status);
        break;
      case 6:
        MPI_Testall(count, requests.data(), &flag, some.data());
        for (int i = 0; flag != 0 && i < count; ++i)
          if (!isDone[static_cast<std::size_t>(i)]) done(i, some[static_cast<std::size_t>(i)]);
        break;
      default:
        if (own() % 4 != 0) break;
        MPI_Waitall(count, requests.data(), some.data());
        for (int i = 0; i < count; ++i)
          if (!isDone[static_cast<std::size_t>(i)]) done(i, some[static_cast<std::size_t>(i)]);
    }
  }
}

}  // namespace

void completeBatch(Batch& batch, int rounds, std::mt19937& own, Digest& digest) {
  std::vector<std::size_t> places;
  for (const Batch::Persistent& one : batch.persistent)
    if (!one.run) places.push_back(one.at);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(places.begin(), places.end(), own);
    // What is persistent stays a request when it is done: it has a place of its own here, empty once it is.
    std::vector<MPI_Request> all = batch.requests, started;
    for (const Batch::Persistent& one : batch.persistent) {
      one.fill(round);
      all[one.at] = MPI_REQUEST_NULL;
      if (one.run) one.run();
    }
    for (const std::size_t at : places) started.push_back(batch.requests[at]);
    if (own() % 2 == 0 && !started.empty())
      MPI_Startall(static_cast<int>(started.size()), started.data());
    else
      for (MPI_Request& one : started) MPI_Start(&one);
    std::vector<MPI_Status> statuses(all.size());
    if (round == 0) completeAll(all, statuses, own);
    for (std::size_t i = 0; round == 0 && i < all.size(); ++i)
      if (batch.isReceive[i]) tellStatus(statuses[i], digest);
    if (own() % 2 == 0)
      MPI_Waitall(static_cast<int>(started.size()), started.data(), MPI_STATUSES_IGNORE);
    else
      for (MPI_Request& one : started)
        for (int isDone = 0; isDone == 0;) MPI_Test(&one, &isDone, MPI_STATUS_IGNORE);
    if (round == 0)
      for (const auto& tell : batch.tell) tell(digest);
    for (const Batch::Persistent& one : batch.persistent) one.tell(digest);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (std::ranges::find(places, i) == places.end()) batch.requests[i] = MPI_REQUEST_NULL;
  }
  for (const std::size_t at : places) MPI_Request_free(&batch.requests[at]);
}

}  // namespace tacc::test
