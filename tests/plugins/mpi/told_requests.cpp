// Requests of every origin in one array (messages, generalized ones, collectives, persistent ones), completed in any
// form; what each one's status tells.
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "corners.hpp"
#include "told.hpp"

#if MPI_VERSION >= 4
#define TACC_TOLD_PERSISTENT(name) MPI_##name
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define TACC_TOLD_PERSISTENT(name) MPIX_##name
#endif

namespace tacc::test {
namespace {

/// A request, and what belongs to it. Addresses stay: MPI keeps them.
struct Item {
  explicit Item(int name) : id(name) {}
  int id;
  const char* what = "nothing";
  MPI_Request request = MPI_REQUEST_NULL;
  bool isPersistent = false, isDone = false;
  bool isMessage = false;  // whose status tells from whom and how much
  bool isSimple = false;   // a message or a collective, of one time
  std::vector<int> from, to;
  std::vector<int> counts, places;
  std::vector<MPI_Datatype> types;
  std::function<void()> finish;  // before anybody waits
  int freed = 0;                 // of a generalized one
};

int queryItem(void* state, MPI_Status* status) {
  const Item& item = *static_cast<Item*>(state);
  MPI_Status_set_elements(status, MPI_INT, item.id);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = item.id;
  status->MPI_TAG = 2 * item.id;
  return MPI_SUCCESS;
}
int freeItem(void* state) {
  ++static_cast<Item*>(state)->freed;
  return MPI_SUCCESS;
}
int cancelItem(void* /*state*/, int /*isComplete*/) { return MPI_SUCCESS; }

class RequestBatch {
 public:
  RequestBatch(const std::vector<MPI_Comm>& comms, Draws& draws, Draws& own)
      : comms_(comms), draws_(draws), own_(own), hasStatuses_(draws.upTo(2) > 0) {}

  void run() {
    const int count = 3 + draws_.upTo(12);
    for (int i = 0; i < count; ++i) {
      items_.push_back(std::make_unique<Item>(i));
      post(*items_.back());
      if (draws_.upTo(4) == 0) useTold(drawnComm(), "one with requests under way");
      if (own_.upTo(2) == 0) completeSome(false);
    }
    startPersistent();
    completeAll();
    for (int round = draws_.upTo(2); round > 0; --round) {
      for (const auto& item : items_)
        if (item->isPersistent) item->isDone = false;
      startPersistent();
      completeAll();
    }
    tellItems();
    for (const auto& item : items_)
      if (item->isPersistent) MPI_Request_free(&item->request);
  }

 private:
  MPI_Comm drawnComm() { return comms_[static_cast<std::size_t>(draws_.upTo(static_cast<int>(comms_.size()) - 1))]; }
  static int countOf(const std::vector<int>& numbers) { return static_cast<int>(numbers.size()); }

  void post(Item& item) {
    MPI_Comm comm = drawnComm();
    const int rank = rankIn(comm), ranks = ranksIn(comm);
    const auto size = static_cast<std::size_t>(draws_.upTo(5) == 0 ? draws_.upTo(30000) : draws_.upTo(30));
    item.from.reserve(1);  // MPICH takes two null buffers for one
    item.to.reserve(1);
    item.from.assign(size, 100 * rank + item.id);
    item.to.assign(size, -1);
    switch (draws_.upTo(7)) {
      case 0:
      case 1:
        return postMessage(item, comm);
      case 2:
        return postToNobody(item, comm);
      case 3:
        return postGeneralized(item);
      case 4:
        item.what = "a cancelled receive";
        item.isMessage = true;
        MPI_Irecv(item.to.data(), countOf(item.to), MPI_INT, (rank + 1) % ranks, 5000 + item.id, comm, &item.request);
        MPI_Cancel(&item.request);
        return;
      case 5:
        if (postPersistent(item, comm)) return;
        [[fallthrough]];
      default:
        return postCollective(item, comm);
    }
  }

  /// To the rank `shift` on, from the one `shift` before, or from anybody.
  void postMessage(Item& item, MPI_Comm comm) {
    const int rank = rankIn(comm), ranks = ranksIn(comm), shift = draws_.upTo(ranks - 1), tag = item.id;
    const int target = (rank + shift) % ranks,
              source = draws_.upTo(1) == 0 ? MPI_ANY_SOURCE : (rank + ranks - shift) % ranks;
    item.what = "a message";
    item.isMessage = true;
    items_.push_back(std::make_unique<Item>(item.id));
    Item& sent = *items_.back();
    sent.what = "a sent one";
    sent.from = item.from;
    const int count = countOf(item.from);
    const bool isFirst = draws_.upTo(1) == 0;
    const int mode = draws_.upTo(2);
    if (mode == 0) {
      item.isPersistent = sent.isPersistent = true;
      MPI_Recv_init(item.to.data(), count, MPI_INT, source, tag, comm, &item.request);
      MPI_Send_init(sent.from.data(), count, MPI_INT, target, tag, comm, &sent.request);
      return;
    }
    const auto receive = [&] { MPI_Irecv(item.to.data(), count, MPI_INT, source, tag, comm, &item.request); };
    if (isFirst) receive();
    if (mode == 1)
      MPI_Issend(sent.from.data(), count, MPI_INT, target, tag, comm, &sent.request);
    else
      MPI_Isend(sent.from.data(), count, MPI_INT, target, tag, comm, &sent.request);
    if (!isFirst) receive();
    item.isSimple = sent.isSimple = true;
  }

  void postToNobody(Item& item, MPI_Comm comm) {
    item.what = "a message of nobody";
    item.isMessage = true;
    MPI_Irecv(item.to.data(), countOf(item.to), MPI_INT, MPI_PROC_NULL, 3, comm, &item.request);
  }

  /// Done at once or later.
  void postGeneralized(Item& item) {
    item.what = "a generalized one";
    item.isMessage = true;
    MPI_Grequest_start(queryItem, freeItem, cancelItem, &item, &item.request);
    const MPI_Request request = item.request;
    if (draws_.upTo(1) == 0)
      MPI_Grequest_complete(request);
    else
      item.finish = [request] { MPI_Grequest_complete(request); };
  }

  void postCollective(Item& item, MPI_Comm comm) {
    const int ranks = ranksIn(comm), root = draws_.upTo(ranks - 1), count = countOf(item.from);
    const auto all = item.from.size() * static_cast<std::size_t>(ranks);
    item.what = "a collective";
    item.isSimple = true;
    const auto blocks = [&](bool isSent) {
      item.to.assign(all, -1);
      if (isSent) item.from.resize(all, 7);
    };
    switch (draws_.upTo(9)) {
      case 0:
        MPI_Ibarrier(comm, &item.request);
        break;
      case 1:
        item.to = item.from;
        MPI_Ibcast(item.to.data(), count, MPI_INT, root, comm, &item.request);
        break;
      case 2:
        MPI_Iallreduce(item.from.data(), item.to.data(), count, MPI_INT, MPI_SUM, comm, &item.request);
        break;
      case 3:
        blocks(false);
        MPI_Iallgather(item.from.data(), count, MPI_INT, item.to.data(), count, MPI_INT, comm, &item.request);
        break;
      case 4:
        blocks(true);
        MPI_Ialltoall(item.from.data(), count, MPI_INT, item.to.data(), count, MPI_INT, comm, &item.request);
        break;
      case 5:
        blocks(false);
        MPI_Igather(item.from.data(), count, MPI_INT, item.to.data(), count, MPI_INT, root, comm, &item.request);
        break;
      case 6:
        blocks(true);
        MPI_Iscatter(item.from.data(), count, MPI_INT, item.to.data(), count, MPI_INT, root, comm, &item.request);
        break;
      case 7:
        MPI_Iscan(item.from.data(), item.to.data(), count, MPI_INT, MPI_MAX, comm, &item.request);
        break;
      case 8:
        item.from.resize(all, 7);
        MPI_Ireduce_scatter_block(item.from.data(), item.to.data(), count, MPI_INT, MPI_SUM, comm, &item.request);
        break;
      default:
        blocks(true);
        for (int r = 0; r < ranks; ++r) item.places.push_back(r * count * static_cast<int>(sizeof(int)));
        item.counts.assign(static_cast<std::size_t>(ranks), count);
        item.types.assign(static_cast<std::size_t>(ranks), MPI_INT);
        MPI_Ialltoallw(item.from.data(), item.counts.data(), item.places.data(), item.types.data(), item.to.data(),
                       item.counts.data(), item.places.data(), item.types.data(), comm, &item.request);
        break;
    }
  }

  bool postPersistent([[maybe_unused]] Item& item, [[maybe_unused]] MPI_Comm comm) {
#ifdef TACC_TOLD_PERSISTENT
    const int count = countOf(item.from);
    item.what = "a persistent collective";
    item.isPersistent = true;
    switch (draws_.upTo(2)) {
      case 0:
        TACC_TOLD_PERSISTENT(Allreduce_init)
        (item.from.data(), item.to.data(), count, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL, &item.request);
        break;
      case 1:
        item.to = item.from;
        TACC_TOLD_PERSISTENT(Bcast_init)
        (item.to.data(), count, MPI_INT, draws_.upTo(ranksIn(comm) - 1), comm, MPI_INFO_NULL, &item.request);
        break;
      default:
        TACC_TOLD_PERSISTENT(Barrier_init)(comm, MPI_INFO_NULL, &item.request);
        break;
    }
    return true;
#else
    return false;
#endif
  }

  /// Each rank in an order of its own, one by one or several at once.
  void startPersistent() {
    std::vector<Item*> started;
    for (const auto& item : items_)
      if (item->isPersistent) started.push_back(item.get());
    for (std::size_t i = started.size(); i > 1; --i)
      std::swap(started[i - 1], started[static_cast<std::size_t>(own_.upTo(static_cast<int>(i) - 1))]);
    const auto half = static_cast<std::size_t>(own_.upTo(static_cast<int>(started.size())));
    std::vector<MPI_Request> atOnce;
    for (std::size_t i = 0; i < half; ++i) atOnce.push_back(started[i]->request);
    if (half > 0) MPI_Startall(static_cast<int>(half), atOnce.data());
    for (std::size_t i = half; i < started.size(); ++i) MPI_Start(&started[i]->request);
    areStarted_ = true;
  }

  void completeAll() {
    for (const auto& item : items_)
      if (item->finish) std::exchange(item->finish, nullptr)();
    while (std::ranges::any_of(items_, [](const auto& item) { return !item->isDone; })) completeSome(true);
    for (const auto& item : items_)
      if (item->isPersistent != (item->request != MPI_REQUEST_NULL)) complain("a request that is done is still there");
  }

  /// In a form that is drawn. `mayWait`: all has been posted and started.
  void completeSome(bool mayWait) {
    std::vector<Item*> open;
    for (const auto& item : items_)
      if (!item->isDone && (!item->isPersistent || areStarted_)) open.push_back(item.get());
    // Also what is done already stands in the array.
    std::vector<Item*> listed = own_.upTo(1) == 0 ? open : everything();
    if (open.empty() || listed.empty()) return;
    Item& one = *open[static_cast<std::size_t>(own_.upTo(static_cast<int>(open.size()) - 1))];
    std::vector<MPI_Request> requests;
    for (const Item* item : listed) requests.push_back(item->request);
    const int count = static_cast<int>(requests.size());
    std::vector<MPI_Status> statuses(requests.size());
    std::vector<int> indices(requests.size());
    MPI_Status* const several = hasStatuses_ ? statuses.data() : MPI_STATUSES_IGNORE;
    MPI_Status* const single = hasStatuses_ ? statuses.data() : MPI_STATUS_IGNORE;
    int flag = 0, index = MPI_UNDEFINED, done = 0;
    const auto isPart = [&](int at) {
      complete(*listed[static_cast<std::size_t>(at)], requests[static_cast<std::size_t>(at)], statuses[0]);
    };
    switch (own_.upTo(mayWait ? 8 : 4)) {
      case 0:
        MPI_Test(&one.request, &flag, single);
        if (flag != 0) complete(one, one.request, statuses[0]);
        return;
      case 1:
        MPI_Testany(count, requests.data(), &index, &flag, single);
        if (flag != 0 && index != MPI_UNDEFINED) isPart(index);
        return;
      case 2:
        MPI_Testsome(count, requests.data(), &done, indices.data(), several);
        break;
      case 3:
#ifndef OPEN_MPI  // MPICH 4.0 itself fails in MPI_Testall of other requests than simple ones
        if (!std::ranges::all_of(listed, &Item::isSimple)) return;
#endif
        MPI_Testall(count, requests.data(), &flag, several);
        done = flag != 0 ? count : 0;
        std::iota(indices.begin(), indices.end(), 0);
        break;
      case 4:
        MPI_Request_get_status(one.request, &flag, single);
        if (flag == 0) return;
        MPI_Wait(&one.request, single);
        return complete(one, one.request, statuses[0]);
      case 5:
        MPI_Wait(&one.request, single);
        return complete(one, one.request, statuses[0]);
      case 6:
        MPI_Waitany(count, requests.data(), &index, single);
        return isPart(index);
      case 7:
        MPI_Waitsome(count, requests.data(), &done, indices.data(), several);
        break;
      default:
        MPI_Waitall(count, requests.data(), several);
        done = count;
        std::iota(indices.begin(), indices.end(), 0);
        break;
    }
    for (int i = 0; i < done && done != MPI_UNDEFINED; ++i) {
      const auto at = static_cast<std::size_t>(indices[static_cast<std::size_t>(i)]);
      if (!listed[at]->isDone) complete(*listed[at], requests[at], statuses[static_cast<std::size_t>(i)]);
    }
  }

  std::vector<Item*> everything() const {
    std::vector<Item*> all;
    for (const auto& item : items_)
      if (!item->isPersistent || areStarted_) all.push_back(item.get());
    return all;
  }

  void complete(Item& item, MPI_Request now, const MPI_Status& status) {
    item.request = now;
    item.isDone = true;
    if (!hasStatuses_) return;
    int count = -1, isCancelled = -1;
    MPI_Test_cancelled(&status, &isCancelled);
    std::ostringstream line;
    line << "cancelled " << isCancelled;
    if (item.isMessage && isCancelled == 0) {
      MPI_Get_count(&status, MPI_INT, &count);
      line << " source " << status.MPI_SOURCE << " tag " << status.MPI_TAG << " count " << count;
    }
    statuses_.resize(items_.size());
    const auto at = std::ranges::find(items_, &item, &std::unique_ptr<Item>::get) - items_.begin();
    statuses_[static_cast<std::size_t>(at)] = line.str();
  }

  void tellItems() {
    statuses_.resize(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Item& item = *items_[i];
      long long sum = 0;
      for (std::size_t at = 0; at < item.to.size(); ++at) sum += static_cast<long long>(at + 1) * item.to[at];
      tell(item.what, item.id, statuses_[i], "sum", sum, "freed", item.freed);
    }
  }

  const std::vector<MPI_Comm>& comms_;
  Draws &draws_, &own_;
  bool hasStatuses_, areStarted_ = false;
  std::vector<std::unique_ptr<Item>> items_;
  std::vector<std::string> statuses_;
};

#ifndef OPEN_MPI  // 4.1 itself now and then never gets the next message
int failures = 0;

void countFailure(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++failures; }

/// A message that is longer than its receiver thinks fails alone, beside collectives that do not, whoever completes it.
void failAlone(MPI_Comm comm) {
  const int rank = rankIn(comm), ranks = ranksIn(comm);
  MPI_Errhandler ofWorld = MPI_ERRHANDLER_NULL, counting = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &ofWorld);
  MPI_Comm_create_errhandler(countFailure, &counting);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);  // which MPICH asks
  MPI_Comm_set_errhandler(comm, counting);
  std::array<int, 8> sent{}, received{};
  std::vector<int> sums(20000, -1), mine(sums.size(), rank);
  for (int round = 0; round < 12; ++round) {
    std::array<MPI_Request, 3> requests{};
    std::array<MPI_Status, 3> statuses{};
    std::array<int, 3> indices{};
    failures = 0;
    MPI_Isend(sent.data(), 8, MPI_INT, (rank + 1) % ranks, 9, comm, &requests[2]);
    MPI_Iallreduce(mine.data(), sums.data(), 20000, MPI_INT, MPI_SUM, comm, &requests[1]);
    MPI_Probe((rank + ranks - 1) % ranks, 9, comm, MPI_STATUS_IGNORE);
    MPI_Irecv(received.data(), 4, MPI_INT, (rank + ranks - 1) % ranks, 9, comm, requests.data());
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    int code = MPI_SUCCESS, ofMessage = MPI_SUCCESS, done = 0, index = 0;
    switch (round % 4) {
      case 0:
        code = MPI_Wait(requests.data(), statuses.data());
        break;
      case 1:
        code = MPI_Waitall(2, requests.data(), statuses.data());
        ofMessage = statuses[0].MPI_ERROR;
        break;
      case 2:
        while (code == MPI_SUCCESS) code = MPI_Waitany(2, requests.data(), &index, statuses.data());
        tell("MPI_Waitany says", index);
        break;
      default:
        while (code == MPI_SUCCESS) code = MPI_Waitsome(2, requests.data(), &done, indices.data(), statuses.data());
        for (int i = 0; i < done; ++i)
          if (indices[static_cast<std::size_t>(i)] == 0) ofMessage = statuses[static_cast<std::size_t>(i)].MPI_ERROR;
        break;
    }
    const int known = failures;
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    tell("a message too long:", classOf(code), classOf(ofMessage), "failures", known, "left",
         requests[0] != MPI_REQUEST_NULL, "sums", sums.front(), sums.back());
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, ofWorld);
  for (MPI_Errhandler* one : {&ofWorld, &counting}) MPI_Errhandler_free(one);
}

#endif

/// Nothing that is to be done.
void askForNothing() {
  std::array<MPI_Request, 2> none{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  std::array<MPI_Status, 2> statuses{};
  std::array<int, 2> indices{};
  int flag = -1, index = -1, done = -1;
  MPI_Test(none.data(), &flag, statuses.data());
  tell("nothing:", flag, statuses[0].MPI_SOURCE == MPI_ANY_SOURCE, statuses[0].MPI_TAG == MPI_ANY_TAG);
  MPI_Testany(2, none.data(), &index, &flag, statuses.data());
  tell("none of two:", flag, index == MPI_UNDEFINED);
  MPI_Waitany(0, nullptr, &index, statuses.data());
  tell("none of none:", index == MPI_UNDEFINED);
  MPI_Waitsome(2, none.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
  tell("some of two:", done == MPI_UNDEFINED);
  MPI_Testall(0, nullptr, &flag, MPI_STATUSES_IGNORE);
  tell("all of none:", flag);
  MPI_Request_get_status(MPI_REQUEST_NULL, &flag, statuses.data());
  tell("of no request:", flag, statuses[0].MPI_SOURCE == MPI_ANY_SOURCE);
}

}  // namespace

void tellRequests(Draws& draws, Draws& own) {
  std::vector<MPI_Comm> comms = communicatorsOfAll();
  comms.push_back(MPI_COMM_WORLD);
  for (MPI_Comm comm : comms) useTold(comm, "one before requests");
  askForNothing();
  for (int batch = 0; batch < 60; ++batch) {
    RequestBatch(comms, draws, own).run();
#ifndef OPEN_MPI
    if (batch % 20 == 0) failAlone(comms[0]);
#endif
  }
  comms.pop_back();
  askForNothing();
  freeAll(comms);
}

void leaveRequests() {
  static std::vector<int> in(1 << 15, 1), out(in.size());
  const auto count = static_cast<int>(in.size());
  static std::array<MPI_Request, 4> left{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  useTold(comm, "one whose requests are left");
  // Done, which the program knows, and does not wait for.
  MPI_Iallreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm, left.data());
  for (int flag = 0; flag == 0;) MPI_Request_get_status(left[0], &flag, MPI_STATUS_IGNORE);
  tell("done and left:", out.front(), out.back(), left[0] != MPI_REQUEST_NULL);
  MPI_Send_init(in.data(), count, MPI_INT, 0, 1, comm, &left[1]);
#ifdef TACC_TOLD_PERSISTENT
  TACC_TOLD_PERSISTENT(Allreduce_init)(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &left[2]);
  TACC_TOLD_PERSISTENT(Barrier_init)(comm, MPI_INFO_NULL, &left[3]);
  MPI_Start(&left[2]);
  MPI_Wait(&left[2], MPI_STATUS_IGNORE);
#endif
  tell("sum of what is left:", out.front(), out.back());
}

}  // namespace tacc::test
