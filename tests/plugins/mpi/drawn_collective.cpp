// One collective of a drawn program: of elements with gaps and without, in place and not, in all three forms.
#include <memory>

#include "drawn.hpp"
#include "mpi_faults.hpp"
#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name
#else
#define PERSISTENT(name) MPI_##name
#endif

namespace tacc::test {
namespace {

constexpr int margin = 16;  // numbers before and behind a buffer's elements

MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}
MPI_Datatype resized(MPI_Datatype type, int low, int extent) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  constexpr auto bytes = static_cast<MPI_Aint>(sizeof(int));
  MPI_Type_create_resized(type, low * bytes, extent * bytes, &made);
  MPI_Type_free(&type);
  return committed(made);
}
MPI_Datatype threeApart() {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_vector(3, 1, 2, MPI_INT, &made);
  return resized(made, 0, 7);
}
MPI_Datatype threeBehind() {
  const int lengths[] = {1, 2};
  const MPI_Aint places[] = {4, -8};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT};
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, places, types, &made);
  return resized(made, -3, 5);
}
MPI_Datatype threeTogether() {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(3, MPI_INT, &made);
  return committed(made);
}

/// Three numbers as one element, or as three.
struct Shape {
  MPI_Datatype type;
  int times, extent;  // elements, and numbers from one three to the next
};
Shape shape(int which) {
  static const MPI_Datatype apart = threeApart(), behind = threeBehind(), together = threeTogether();
  switch (which) {
    case 0:
      return {apart, 1, 7};
    case 1:
      return {behind, 1, 5};
    case 2:
      return {together, 1, 3};
    default:
      return {MPI_INT, 3, 3};
  }
}

struct Reduced {
  MPI_Datatype type;
  MPI_Op op;
  int bytes;
  bool isPair, isDouble;
};
/// Sums of drawn integers are exact in whatever order they are made, and none of these does an MPI do wrong itself.
Reduced reduced(int which) {
  static const MPI_Op ofProgram = [] {
    MPI_Op made = MPI_OP_NULL;
    MPI_Op_create(
        [](void* in, void* inOut, int* count, MPI_Datatype*) CALLED_BY_MPI {
          for (int i = 0; i < *count; ++i) static_cast<int*>(inOut)[i] ^= 3 * static_cast<int*>(in)[i];
        },
        1, &made);
    return made;
  }();
  switch (which) {
    case 0:
      return {MPI_INT, MPI_SUM, 4, false, false};
    case 1:
      return {MPI_LONG_LONG, MPI_BXOR, 8, false, false};
    case 2:
      return {MPI_INT, MPI_MIN, 4, false, false};
    case 3:
      return {MPI_2INT, MPI_MAXLOC, 8, true, false};
    case 4:
      return {MPI_DOUBLE, MPI_SUM, 8, false, true};
    case 5:
      return {MPI_UNSIGNED_SHORT, MPI_BAND, 2, false, false};
    case 6:
      return {MPI_INT, ofProgram, 4, false, false};
    default:
      return {MPI_UNSIGNED, MPI_PROD, 4, false, false};
  }
}

/// What one call needs as long as it is under way.
struct Collective {
  Call call = Call::barrier;
  Form form = Form::blocking;
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, ranks = 1, root = 0, count = 0, seed = 0;
  bool isInPlace = false;
  Reduced sum{};
  Shape from{}, to{};
  std::vector<int> sendCounts, sendPlaces, receiveCounts, receivePlaces;
  std::vector<int> sent, received;
  std::size_t told = 0;  // bytes from the beginning of `received` that say something; 0: all

  void fill(int round);
  int make(MPI_Request* request);
  void tell(Digest& digest) const {
    digest.add(received.data(), told > 0 ? told : received.size() * sizeof(int));
    digest.add(sent.data(), sent.size() * sizeof(int));
    digest.mark(nameOf(call) + std::string(" of ") + std::to_string(count) + " on " + std::to_string(ranks) +
                " ranks, root " + std::to_string(root) + (isInPlace ? ", in place" : ""));
  }
  bool isOfRoot() const { return rank == root; }
};

void Collective::fill(int round) {
  const auto number = [&](std::size_t i, int salt) {
    const auto mixed = static_cast<std::uint32_t>(seed + 77 * round + salt + 1009 * rank) * 2654435761U;
    return static_cast<int>((mixed ^ (static_cast<std::uint32_t>(i) * 40503U)) >> 7U) % 5000;
  };
  for (std::vector<int>* const buffer : {&sent, &received}) {
    const int salt = buffer == &sent ? 0 : 500;
    for (std::size_t i = 0; i < buffer->size(); ++i) (*buffer)[i] = number(i, salt);
    if (!isReduction(call)) continue;
    // Places of pairs are what decides where their values are equal.
    for (std::size_t i = 0; sum.isPair && i + 1 < buffer->size(); i += 2) (*buffer)[i] %= 5;
    auto* const doubles = reinterpret_cast<double*>(buffer->data());
    for (std::size_t i = 0; sum.isDouble && i < buffer->size() / 2; ++i) doubles[i] = number(i, salt);
  }
}

// The form that was drawn.
#define CALL(name, iName, ...)                                           \
  (form == Form::blocking      ? MPI_##name(__VA_ARGS__, comm)           \
   : form == Form::nonblocking ? MPI_##iName(__VA_ARGS__, comm, request) \
                               : PERSISTENT(name##_init)(__VA_ARGS__, comm, MPI_INFO_NULL, request))

int Collective::make(MPI_Request* request) {
  const bool isScatter = call == Call::scatter || call == Call::scatterv;
  const bool isGatherOrReduce = call == Call::gather || call == Call::gatherv || call == Call::reduce;
  const bool isSelf = isInPlace && call != Call::bcast && (!(isScatter || isGatherOrReduce) || isOfRoot());
  const void* const send = isSelf && !isScatter ? MPI_IN_PLACE : sent.data() + margin;
  void* const receive = isSelf && isScatter ? MPI_IN_PLACE : received.data() + margin;
  const int sends = sendCounts.empty() ? 0 : sendCounts[0], receives = receiveCounts.empty() ? 0 : receiveCounts[0];
  const int ownReceives =
      receiveCounts.empty() ? 0 : receiveCounts[static_cast<std::size_t>(rank) % receiveCounts.size()];
  switch (call) {
    case Call::allreduce:
      return CALL(Allreduce, Iallreduce, send, receive, count, sum.type, sum.op);
    case Call::reduce:
      return CALL(Reduce, Ireduce, send, receive, count, sum.type, sum.op, root);
    case Call::scan:
      return CALL(Scan, Iscan, send, receive, count, sum.type, sum.op);
    case Call::exscan:
      return CALL(Exscan, Iexscan, send, receive, count, sum.type, sum.op);
    case Call::reduceScatterBlock:
      return CALL(Reduce_scatter_block, Ireduce_scatter_block, send, receive, count, sum.type, sum.op);
    case Call::reduceScatter:
      return CALL(Reduce_scatter, Ireduce_scatter, send, receive, receiveCounts.data(), sum.type, sum.op);
    case Call::allgather:
      return CALL(Allgather, Iallgather, send, sends, from.type, receive, receives, to.type);
    case Call::allgatherv:
      return CALL(Allgatherv, Iallgatherv, send, sends, from.type, receive, receiveCounts.data(), receivePlaces.data(),
                  to.type);
    case Call::alltoall:
      return CALL(Alltoall, Ialltoall, send, sends, from.type, receive, receives, to.type);
    case Call::alltoallv:
      return CALL(Alltoallv, Ialltoallv, send, sendCounts.data(), sendPlaces.data(), from.type, receive,
                  receiveCounts.data(), receivePlaces.data(), to.type);
    case Call::gather:
      return CALL(Gather, Igather, send, sends, from.type, receive, receives, to.type, root);
    case Call::gatherv:
      return CALL(Gatherv, Igatherv, send, sends, from.type, receive, receiveCounts.data(), receivePlaces.data(),
                  to.type, root);
    case Call::scatter:
      return CALL(Scatter, Iscatter, send, sends, from.type, receive, ownReceives, to.type, root);
    case Call::scatterv:
      return CALL(Scatterv, Iscatterv, send, sendCounts.data(), sendPlaces.data(), from.type, receive, ownReceives,
                  to.type, root);
    case Call::bcast:
      return CALL(Bcast, Ibcast, receive, ownReceives, to.type, root);
    default:
      return form == Form::blocking      ? MPI_Barrier(comm)
             : form == Form::nonblocking ? MPI_Ibarrier(comm, request)
                                         : PERSISTENT(Barrier_init)(comm, MPI_INFO_NULL, request);
  }
}

/// Blocks of so many threes, with gaps of whole ones between, in elements of `shape`. Returns the numbers that all
/// take.
int place(const Shape& shape, const std::vector<int>& threes, int gap, std::vector<int>& counts,
          std::vector<int>& places) {
  int all = 0;
  for (const int each : threes) {
    counts.push_back(each * shape.times);
    places.push_back(all * shape.times);
    all += each + gap;
  }
  return all * shape.extent;
}

void layOut(Collective& c, Draws& draws, std::mt19937& shapes) {
  const auto ranks = static_cast<std::size_t>(c.ranks), self = static_cast<std::size_t>(c.rank);
  std::vector<int> weights;
  for (int i = 0; i < 16; ++i) weights.push_back(draws.upTo(2) == 0 ? 0 : draws.upTo(c.count));
  const int gap = draws.upTo(2);
  // Ranks of Open MPI 4.1 choose other algorithms where their types differ, and wait for ever.
  c.from = shape(static_cast<int>(shapes() % 4));
  c.to = c.call == Call::allgatherv ? c.from : shape(static_cast<int>(shapes() % 4));
  const bool isEqual = !isUnequal(c.call);
  const auto blockOf = [&](std::size_t from, std::size_t to) {
    return isEqual ? c.count : c.call == Call::alltoallv ? weights[from] * weights[to] % (c.count + 1) : weights[from];
  };
  const auto blocks = [&](bool isSent) {
    std::vector<int> all;
    for (std::size_t r = 0; r < ranks; ++r)
      all.push_back(isSent ? (c.call == Call::scatterv ? blockOf(r, 0) : blockOf(self, r)) : blockOf(r, self));
    return all;
  };
  const bool isGather = c.call == Call::gather || c.call == Call::gatherv;
  const bool isScatter = c.call == Call::scatter || c.call == Call::scatterv;
  const bool sendsOne = isGather || c.call == Call::allgather || c.call == Call::allgatherv;
  const std::vector<int> ownBlock{blockOf(self, 0)};
  int sent = 0, received = 0;
  if (c.call != Call::bcast && !(isScatter && !c.isOfRoot()))
    sent = place(c.from, sendsOne ? ownBlock : blocks(true), isEqual ? 0 : gap, c.sendCounts, c.sendPlaces);
  if (isScatter || c.call == Call::bcast)
    received = place(c.to, ownBlock, 0, c.receiveCounts, c.receivePlaces);
  else if (!(isGather && !c.isOfRoot()))
    received = place(c.to, blocks(false), isEqual ? 0 : gap, c.receiveCounts, c.receivePlaces);
  c.sent.resize(static_cast<std::size_t>(sent + 2 * margin));
  c.received.resize(static_cast<std::size_t>(received + 2 * margin));
}

void layOutReduction(Collective& c, Draws& draws) {
  int given = c.count, result = c.count;
  if (c.call == Call::reduceScatterBlock) given *= c.ranks;
  if (c.call == Call::reduceScatter) {
    given = 0;
    for (int r = 0; r < 16; ++r) {
      const int of = draws.upTo(3) == 0 ? 0 : draws.upTo(c.count);
      if (r >= c.ranks) continue;
      c.receiveCounts.push_back(of);
      given += of;
    }
    result = c.receiveCounts[static_cast<std::size_t>(c.rank)];
  }
  const auto numbers = static_cast<std::size_t>(2 * given + 2 * margin);
  c.sent.resize(numbers);
  c.received.resize(numbers);
  // What is behind the result in place, and of ranks that have none, nobody tells.
  const bool hasNone = (c.call == Call::reduce && !c.isOfRoot()) || (c.call == Call::exscan && c.rank == 0);
  c.told =
      margin * sizeof(int) + (hasNone ? 0 : static_cast<std::size_t>(result) * static_cast<std::size_t>(c.sum.bytes));
}

}  // namespace

void drawCollective(const Member& member, Draws& draws, Batch& batch, Digest& digest) {
  auto made = std::make_shared<Collective>();
  Collective& c = *made;
  c.call = static_cast<Call>(draws.upTo(static_cast<int>(Call::barrier)));
  const int form = draws.upTo(9), count = draws.upTo(4), many = draws.upTo(8000), few = draws.upTo(40);
  c.form = form < 4 ? Form::blocking : form < 8 ? Form::nonblocking : Form::persistent;
  c.count = count == 0 ? 0 : count == 1 ? many / (isReduction(c.call) ? 1 : 3) : few;
  c.root = draws.upTo(1000) % member.ranks;
  c.isInPlace = draws.upTo(2) == 0 && member.ranks > 1;
  c.seed = draws.upTo(1000000);
  c.sum = reduced(draws.upTo(7));
  std::mt19937 shapes(static_cast<unsigned>(c.seed + 31 * member.rank));  // each rank has its own
  c.comm = member.comm;
  c.rank = member.rank;
  c.ranks = member.ranks;
  // Of these the MPIs do some wrong.
  if (c.form == Form::persistent && member.ranks == 1) c.form = Form::nonblocking;
  if (isReduction(c.call) && c.sum.op == reduced(6).op) {
    c.isInPlace = false;
    if (c.form == Form::persistent) c.form = Form::blocking;
  }
  const std::size_t bytes = static_cast<std::size_t>(c.count) * (isReduction(c.call) ? 8 : 12);
  // A persistent one may be made as a blocking one.
  const Form other = c.form == Form::persistent ? Form::blocking : c.form;
  for (const Form one : {c.form, other})
    if (isWrongInMpi({c.call, one, c.ranks, bytes})) c.isInPlace = false;
  if (isReduction(c.call))
    layOutReduction(c, draws);
  else if (c.call != Call::barrier)
    layOut(c, draws, shapes);
  c.fill(0);
  const auto tell = [made](Digest& to) { made->tell(to); };
  const auto fill = [made](int round) { made->fill(round); };
  if (c.form == Form::persistent && hasNoPersistentOnes) {
    c.form = Form::blocking;
    batch.persistent.push_back({batch.add(MPI_REQUEST_NULL), fill, tell, [made] { made->make(nullptr); }});
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  if (c.make(&request) != MPI_SUCCESS) complain("a collective fails");
  if (c.form == Form::blocking)
    tell(digest);
  else if (c.form == Form::nonblocking)
    batch.add(request), batch.tell.emplace_back(tell);
  else
    batch.persistent.push_back({batch.add(request), fill, tell, {}});
}

}  // namespace tacc::test
