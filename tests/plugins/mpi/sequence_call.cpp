#include "sequence_call.hpp"

#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define PERSISTENT(name) MPIX_##name
#endif
#elif MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name
#endif

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tacc::test {

using enum Call;

namespace {

constexpr int extentWithGaps = 12, extentAround = 9;

template <class Number>
void fillWith(std::byte* at, int value) {
  const auto number = static_cast<Number>(value);
  std::memcpy(at, &number, sizeof number);
}
void fillPair(std::byte* at, int value) {
  struct {
    float number;
    int place;
  } const pair{static_cast<float>(value % 7), value};
  std::memcpy(at, &pair, sizeof pair);
}

MPI_Datatype committed(MPI_Datatype type) {
  PMPI_Type_commit(&type);
  return type;
}

MPI_Datatype six() {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  PMPI_Type_contiguous(unit, MPI_INT, &made);
  return committed(made);
}

MPI_Datatype sixWithGaps() {
  MPI_Datatype gaps = MPI_DATATYPE_NULL, made = MPI_DATATYPE_NULL;
  PMPI_Type_vector(3, 2, 4, MPI_INT, &gaps);
  PMPI_Type_create_resized(gaps, 0, extentWithGaps * static_cast<MPI_Aint>(sizeof(int)), &made);
  PMPI_Type_free(&gaps);
  return committed(made);
}

MPI_Datatype sixBackwards() {
  const int lengths[] = {1, 3, 2}, places[] = {5, 2, 0};
  MPI_Datatype made = MPI_DATATYPE_NULL;
  PMPI_Type_indexed(3, lengths, places, MPI_INT, &made);
  return committed(made);
}

/// Begins before its address and ends behind its numbers.
MPI_Datatype sixAround() {
  MPI_Datatype plain = six(), made = MPI_DATATYPE_NULL;
  PMPI_Type_create_resized(plain, -8, extentAround * static_cast<MPI_Aint>(sizeof(int)), &made);
  PMPI_Type_free(&plain);
  return committed(made);
}

/// x -> first * x + second.
struct Line {
  unsigned first, second;
};
void fillLine(std::byte* at, int value) {
  const Line line{static_cast<unsigned>(2 * value + 1), static_cast<unsigned>(value)};
  std::memcpy(at, &line, sizeof line);
}
/// One after the other: not the same in another order.
MPI_Op lineAfterLine() {
  MPI_Op made = MPI_OP_NULL;
  PMPI_Op_create(
      [](void* in, void* inOut, int* count, MPI_Datatype*) CALLED_BY_MPI {
        for (int i = 0; i < *count; ++i) {
          const Line before = static_cast<Line*>(in)[i], after = static_cast<Line*>(inOut)[i];
          static_cast<Line*>(inOut)[i] = {before.first * after.first, after.first * before.second + after.second};
        }
      },
      0, &made);
  return made;
}

MPI_Op sumOfPrograms() {
  MPI_Op made = MPI_OP_NULL;
  PMPI_Op_create(
      [](void* in, void* inOut, int* count, MPI_Datatype*) CALLED_BY_MPI {
        for (int i = 0; i < *count; ++i) static_cast<int*>(inOut)[i] += static_cast<int*>(in)[i];
      },
      1, &made);
  return made;
}

}  // namespace

Layout layout(int which) {
  static const MPI_Datatype whole = six(), gaps = sixWithGaps(), backwards = sixBackwards(), around = sixAround();
  switch (which) {
    case 0:
      return {MPI_INT, unit, unit};
    case 1:
      return {whole, 1, unit};
    case 2:
      return {gaps, 1, extentWithGaps};
    case 3:
      return {around, 1, extentAround};
    default:
      return {backwards, 1, unit};
  }
}

/// Sums of floating-point numbers are exact, in whatever order they are made.
const std::vector<Reduced>& reductions() {
  static const std::vector<Reduced> all{
      {MPI_INT, MPI_SUM, sizeof(int), fillWith<int>, false},
      {MPI_DOUBLE, MPI_SUM, sizeof(double), fillWith<double>, false},
      {MPI_FLOAT, MPI_MAX, sizeof(float), fillWith<float>, false},
      {MPI_SHORT, MPI_MIN, sizeof(short), fillWith<short>, false},
      {MPI_LONG_LONG, MPI_BXOR, sizeof(long long), fillWith<long long>, false},
      {MPI_UNSIGNED, MPI_PROD, sizeof(unsigned), fillWith<unsigned>, false},
      {MPI_FLOAT_INT, MPI_MINLOC, sizeof(float) + sizeof(int), fillPair, false},
      {MPI_UNSIGNED_CHAR, MPI_LOR, 1, fillWith<unsigned char>, false},
      {MPI_INT, sumOfPrograms(), sizeof(int), fillWith<int>, true},
      {MPI_2INT, lineAfterLine(), sizeof(Line), fillLine, true},
  };
  return all;
}

void SequenceCall::Blocks::add(int units, int gap) {
  counts.push_back(units * layout.times);
  // Places are in elements of the type.
  const int element = layout.extent / layout.times;
  places.push_back((all + element - 1) / element);
  all = places.back() * element + units * layout.extent + gap * layout.extent;
  largeCounts.push_back(counts.back());
  largePlaces.push_back(places.back());
}

SequenceCall::SequenceCall(const Twin& twin, Draws& draws, Draws& own, bool isTacc, int id)
    : twin_(twin), id_(id), kind_(static_cast<Call>(draws.upTo(static_cast<int>(barrier)))) {
  const int drawnRoot = draws.upTo(1000);
  count_ = draws.upTo(5) == 0 ? draws.upTo(6000) : draws.upTo(60);
  isInPlace_ = draws.upTo(2) == 0;
  const int drawnForm = draws.upTo(9);
  form_ = drawnForm < 5 ? Form::blocking : Form::nonblocking;
#ifdef PERSISTENT
  if (drawnForm == 9) form_ = Form::persistent;
#endif
  const auto drawnReduced = static_cast<std::size_t>(draws.upTo(static_cast<int>(reductions().size()) - 1));
  for (int i = 0; i < 8; ++i) units_.push_back(draws.upTo(3) == 0 ? 0 : draws.upTo(std::min(count_, 900)));
  largeUnits_.assign(units_.begin(), units_.end());
#if MPI_VERSION >= 4
  isLarge_ = own.upTo(2) == 0;
#endif
  if (!twin_.isPart()) return;
  root_ = drawnRoot % twin_.ranks;
  isInPlace_ = isInPlace_ && twin_.ranks > 1;
  // MPI's own, which use types that were freed.
  if (form_ == Form::persistent && twin_.ranks == 1) form_ = Form::nonblocking;
  if (twin_.isGoing && twin_.ranks == 1) form_ = Form::blocking;
  if (kind_ == barrier) return;
  if (isReduction()) {
    reduced_ = &reductions()[drawnReduced];
    isInPlace_ = isInPlace_ && !reduced_->isOfProgram;
    if (reduced_->isOfProgram && form_ == Form::persistent) form_ = Form::nonblocking;
    // MPI's own: those of Open MPI 4.1 crash when their communicator goes.
    if (reduced_->isOfProgram && twin_.isGoing) form_ = Form::blocking;
  } else {
    count_ /= unit;
  }
  isServedByMpi_ = !isTacc || twin_.ranks == 1 || (reduced_ != nullptr && reduced_->isOfProgram);
  if (isServedByMpi_ && isInPlace_ && isWrongInMpi({kind_, form_, twin_.ranks, bytes()})) isInPlace_ = false;
  if (isReduction())
    prepareReduction();
  else
    prepareMovement(own);
}

std::size_t SequenceCall::bytes() const {
  return isReduction() ? static_cast<std::size_t>(count_) * reduced_->bytes
                       : static_cast<std::size_t>(count_) * unit * sizeof(int);
}

void SequenceCall::prepareReduction() {
  const int all = std::accumulate(units_.begin(), units_.begin() + twin_.ranks, 0);
  const int given = kind_ == reduceScatterBlock ? count_ * twin_.ranks : kind_ == reduceScatter ? all : count_;
  const auto elements = static_cast<std::size_t>(given);
  for (std::vector<std::byte>* buffer : {&sent_, &received_}) {
    buffer->resize((elements + 8) * reduced_->bytes);
    for (std::size_t i = 0; i < elements; ++i)
      reduced_->fill(buffer->data() + i * reduced_->bytes,
                     (id_ + 3 * twin_.rank + static_cast<int>(i % 11) + (buffer == &sent_ ? 0 : 5)) % 19);
  }
}

/// Equal for both directions, as calls in place need it.
int SequenceCall::unitsOf(int from, int to) const {
  return units_[static_cast<std::size_t>(from)] * units_[static_cast<std::size_t>(to)] % 301;
}

void SequenceCall::prepareMovement(Draws& own) {
  from_.layout = layout(own.upTo(layouts - 1));
  to_.layout = layout(own.upTo(layouts - 1));
  // Ranks of Open MPI 4.1 choose different algorithms, and wait for ever, where their types differ.
  if (kind_ == allgatherv) from_.layout = to_.layout = layout(id_ % layouts);
  const auto ofRank = [&](int r) { return units_[static_cast<std::size_t>(r)]; };
  const bool isRoot = twin_.rank == root_;
  for (int r = 0; r < twin_.ranks; ++r) {
    const int gap = own.upTo(2);
    switch (kind_) {
      case allgather:
        to_.add(count_, 0);
        break;
      case allgatherv:
        to_.add(ofRank(r), gap);
        break;
      case alltoall:
        from_.add(count_, 0);
        to_.add(count_, 0);
        break;
      case alltoallv:
        from_.add(unitsOf(twin_.rank, r), gap);
        to_.add(unitsOf(r, twin_.rank), own.upTo(2));
        break;
      case gather:
        if (isRoot) to_.add(count_, 0);
        break;
      case gatherv:
        if (isRoot) to_.add(ofRank(r), gap);
        break;
      case scatter:
        if (isRoot) from_.add(count_, 0);
        break;
      case scatterv:
        if (isRoot) from_.add(ofRank(r), gap);
        break;
      default:
        break;
    }
  }
  if (kind_ == allgather || kind_ == gather) from_.add(count_, 0);
  if (kind_ == allgatherv || kind_ == gatherv) from_.add(ofRank(twin_.rank), 0);
  if (kind_ == scatter || kind_ == bcast) to_.add(count_, 0);
  if (kind_ == scatterv) to_.add(ofRank(twin_.rank), 0);
  const auto fill = [&](std::vector<std::byte>& buffer, int numbers, int salt) {
    std::vector<int> filled(static_cast<std::size_t>(numbers) + 2 * extentWithGaps);
    for (std::size_t i = 0; i < filled.size(); ++i) filled[i] = salt + 100000 * twin_.rank + static_cast<int>(i);
    buffer.resize(filled.size() * sizeof(int));
    std::memcpy(buffer.data(), filled.data(), buffer.size());
  };
  fill(sent_, from_.all, 1000000 * (id_ % 1000));
  fill(received_, to_.all, -2000000000);
}

// The program's call, in the form that was drawn, or MPI's own.
#ifdef PERSISTENT
#define CALL_PERSISTENT(name, ...) PERSISTENT(name##_init)(__VA_ARGS__, twin_.comm, MPI_INFO_NULL, &this->request)
#else
#define CALL_PERSISTENT(name, ...) MPI_ERR_OTHER
#endif
#if MPI_VERSION >= 4
#define CALL_LARGE(name, iName, ...)                                                                          \
  (form_ == Form::persistent    ? MPI_##name##_init_c(__VA_ARGS__, twin_.comm, MPI_INFO_NULL, &this->request) \
   : form_ == Form::nonblocking ? MPI_##iName##_c(__VA_ARGS__, twin_.comm, &this->request)                    \
                                : MPI_##name##_c(__VA_ARGS__, twin_.comm))
#else
#define CALL_LARGE(name, iName, ...) MPI_ERR_OTHER
#endif
#define CALL(name, iName, ...)                                                         \
  (isReference                  ? PMPI_##name(__VA_ARGS__, twin_.other)                \
   : isLarge_                   ? CALL_LARGE(name, iName, __VA_ARGS__)                 \
   : form_ == Form::persistent  ? CALL_PERSISTENT(name, __VA_ARGS__)                   \
   : form_ == Form::nonblocking ? MPI_##iName(__VA_ARGS__, twin_.comm, &this->request) \
                                : MPI_##name(__VA_ARGS__, twin_.comm))

int SequenceCall::reduceBy(const std::byte* send, std::byte* receive, bool isReference) {
  const MPI_Datatype type = reduced_->type;
  const MPI_Op op = reduced_->op;
  const Numbers<MPI_Count> units{units_.data(), largeUnits_.data()};
  switch (kind_) {
    case allreduce:
      return CALL(Allreduce, Iallreduce, send, receive, count_, type, op);
    case reduce:
      return CALL(Reduce, Ireduce, send, receive, count_, type, op, root_);
    case scan:
      return CALL(Scan, Iscan, send, receive, count_, type, op);
    case exscan:
      return CALL(Exscan, Iexscan, send, receive, count_, type, op);
    case reduceScatterBlock:
      return CALL(Reduce_scatter_block, Ireduce_scatter_block, send, receive, count_, type, op);
    default:
      return CALL(Reduce_scatter, Ireduce_scatter, send, receive, units, type, op);
  }
}

int SequenceCall::moveBy(const std::byte* send, std::byte* receive, bool isReference) {
  // The reference of a call in place has its own block beside it.
  const bool isSwapped = isReference && send == received_.data();
  const auto self = static_cast<std::size_t>(twin_.rank);
  const MPI_Datatype to = to_.layout.type, from = isSwapped ? to : from_.layout.type;
  const Blocks& sent = isSwapped ? to_ : from_;
  const Numbers<MPI_Count> sendCounts = sent.allCounts(), receiveCounts = to_.allCounts();
  const Numbers<MPI_Aint> sendPlaces = sent.allPlaces(), receivePlaces = to_.allPlaces();
  int sends = from_.first();
  if (isSwapped && kind_ != alltoall && kind_ != alltoallv) {
    sends = to_.counts[self];
    send += static_cast<std::ptrdiff_t>(to_.places[self]) * (to_.layout.extent / to_.layout.times) *
            static_cast<std::ptrdiff_t>(sizeof(int));
  } else if (isSwapped) {
    sends = to_.first();
  }
  switch (kind_) {
    case bcast:
      return CALL(Bcast, Ibcast, receive, to_.first(), to, root_);
    case allgather:
      return CALL(Allgather, Iallgather, send, sends, from, receive, to_.first(), to);
    case allgatherv:
      return CALL(Allgatherv, Iallgatherv, send, sends, from, receive, receiveCounts, receivePlaces, to);
    case alltoall:
      return CALL(Alltoall, Ialltoall, send, sends, from, receive, to_.first(), to);
    case alltoallv:
      return CALL(Alltoallv, Ialltoallv, send, sendCounts, sendPlaces, from, receive, receiveCounts, receivePlaces, to);
    case gather:
      return CALL(Gather, Igather, send, sends, from, receive, to_.first(), to, root_);
    case gatherv:
      return CALL(Gatherv, Igatherv, send, sends, from, receive, receiveCounts, receivePlaces, to, root_);
    case scatter:
      return CALL(Scatter, Iscatter, send, from_.first(), from, receive, to_.first(), to, root_);
    default:
      return CALL(Scatterv, Iscatterv, send, sendCounts, sendPlaces, from, receive, to_.first(), to, root_);
  }
}

/// Derived types of the program's call go before it is complete, where the MPI lets them.
int SequenceCall::call(bool isReference) {
  if (isReference || isReduction() || kind_ == barrier) return callNow(isReference);
  if (isServedByMpi_ && form_ == Form::persistent && needsTypesOfPersistentOnes) return callNow(false);
  const MPI_Datatype from = from_.layout.type, to = to_.layout.type;
  std::vector<MPI_Datatype*> copied;
  for (MPI_Datatype* const type : {&from_.layout.type, &to_.layout.type})
    if (*type != MPI_DATATYPE_NULL && PMPI_Type_dup(*type, type) == MPI_SUCCESS) copied.push_back(type);
  const int code = callNow(false);
  for (MPI_Datatype* const type : copied) MPI_Type_free(type);
  from_.layout.type = from;
  to_.layout.type = to;
  return code;
}

int SequenceCall::callNow(bool isReference) {
  if (kind_ == barrier) {
#ifdef PERSISTENT
    if (!isReference && form_ == Form::persistent) return PERSISTENT(Barrier_init)(twin_.comm, MPI_INFO_NULL, &request);
#endif
    return isReference                  ? PMPI_Barrier(twin_.other)
           : form_ == Form::nonblocking ? MPI_Ibarrier(twin_.comm, &request)
                                        : MPI_Barrier(twin_.comm);
  }
  const bool isOfRoot = kind_ == reduce || kind_ == gather || kind_ == gatherv;
  const bool isScatter = kind_ == scatter || kind_ == scatterv;
  const bool isSelf = isInPlace_ && kind_ != bcast && ((!isOfRoot && !isScatter) || twin_.rank == root_);
  const auto* const inPlace = static_cast<const std::byte*>(MPI_IN_PLACE);
  const std::byte* send = isReference ? sent_.data() : send_.data();
  std::byte* receive = isReference ? otherReceive_.data() : receive_.data();
  if (isSelf && isScatter)
    receive = static_cast<std::byte*>(MPI_IN_PLACE);
  else if (isSelf)
    send = isReference ? received_.data() : inPlace;
  return isReduction() ? reduceBy(send, receive, isReference) : moveBy(send, receive, isReference);
}

void SequenceCall::make() {
  if (!twin_.isPart()) return;
  send_ = sent_;
  receive_ = otherReceive_ = received_;
  if (call(false) != MPI_SUCCESS) complain(text() + " fails");
}

void SequenceCall::compare() {
  if (!twin_.isPart()) return;
  if (call(true) != MPI_SUCCESS) complain(text() + " fails in MPI");
  if (send_ != sent_) complain(text() + " writes into what it sends");
  if (kind_ == exscan && twin_.rank == 0) return;  // which has no result
  if (isInPlace_ &&
      (kind_ == reduceScatterBlock || kind_ == reduceScatter)) {  // what is behind the result nobody tells
    const int own = kind_ == reduceScatterBlock ? count_ : units_[static_cast<std::size_t>(twin_.rank)];
    const std::size_t result = static_cast<std::size_t>(own) * reduced_->bytes, after = 8 * reduced_->bytes;
    for (std::vector<std::byte>* one : {&receive_, &otherReceive_})
      one->erase(one->begin() + static_cast<std::ptrdiff_t>(result), one->end() - static_cast<std::ptrdiff_t>(after));
  }
  if (receive_ == otherReceive_) return;
  const auto at = std::ranges::mismatch(receive_, otherReceive_).in1 - receive_.begin();
  complain(text() + " differs from MPI's at byte " + std::to_string(at) + " of " + std::to_string(receive_.size()));
}

std::string SequenceCall::text() const {
  return nameOf(form_) + std::string(nameOf(kind_)) + (isLarge_ ? "_c " : " ") + std::to_string(id_) + ", count " +
         std::to_string(count_) + ", root " + std::to_string(root_) + " of " + std::to_string(twin_.ranks) +
         (isInPlace_ ? ", in place" : "");
}

}  // namespace tacc::test
