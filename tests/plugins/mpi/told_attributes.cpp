// Attributes of communicators and of types: which callbacks are called, in what order and with what, while collectives
// go on; also those that refuse.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "corners.hpp"
#include "told.hpp"

namespace tacc::test {
namespace {

/// What the callbacks of a key do.
struct Key {
  int id = 0, number = MPI_KEYVAL_INVALID;
  enum Copies { always, never, copiesNext, fails } copies = always;
  bool refusesToGo = false;  // its deletion fails, once
  bool calls = false;        // a collective, in each callback
};

void* valueOf(std::intptr_t number) { return reinterpret_cast<void*>(number); }
std::intptr_t numberOf(void* value) { return reinterpret_cast<std::intptr_t>(value); }

int copyTold(MPI_Comm old, int /*number*/, void* state, void* value, void* to, int* flag) {
  const Key& key = *static_cast<Key*>(state);
  tell("copy of key", key.id, "value", numberOf(value), "ranks", ranksIn(old));
  if (key.calls) useTold(old, "a communicator in a copy callback");
  *flag = key.copies != Key::never ? 1 : 0;
  *static_cast<void**>(to) = key.copies == Key::copiesNext ? valueOf(numberOf(value) + 1) : value;
  return key.copies == Key::fails ? MPI_ERR_INTERN : MPI_SUCCESS;
}

int deleteTold(MPI_Comm comm, int /*number*/, void* value, void* state) {
  Key& key = *static_cast<Key*>(state);
  tell("deletion of key", key.id, "value", numberOf(value), "ranks", ranksIn(comm));
  if (key.calls) useTold(comm, "a communicator in a delete callback");
  if (!key.refusesToGo) return MPI_SUCCESS;
  key.refusesToGo = false;
  return MPI_ERR_INTERN;
}

class AttributeProgram {
 public:
  explicit AttributeProgram(Draws& draws) : draws_(draws), keys_(5) {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      keys_[i].id = static_cast<int>(i);
      keys_[i].copies = static_cast<Key::Copies>(draws.upTo(2));
      keys_[i].calls = draws.upTo(3) == 0;
      MPI_Comm_create_keyval(copyTold, deleteTold, &keys_[i].number, &keys_[i]);
    }
    comms_ = communicatorsOfAll();
  }
  void step() {
    MPI_Comm& comm = drawn(comms_);
    Key& key = drawn(keys_);
    switch (draws_.upTo(9)) {
      case 0:
      case 1:
      case 2:
        MPI_Comm_set_attr(comm, key.number, valueOf(++value_));
        break;
      case 3:
        if (hasAttribute(comm, key)) MPI_Comm_delete_attr(comm, key.number);
        break;
      case 4:
      case 5:
        copy(comm);
        break;
      case 6:
        end(comm);
        break;
      default:
        useTold(comm, "one with attributes");
        break;
    }
    for (const Key& one : keys_) hasAttribute(comms_[0], one);
  }
  /// Keys may go before what was set by them.
  void finish() {
    const std::size_t half = keys_.size() / 2;
    for (std::size_t i = 0; i < half; ++i) MPI_Comm_free_keyval(&keys_[i].number);
    for (MPI_Comm comm : comms_) useTold(comm, "one whose keys are freed");
    freeAll(comms_);
    for (std::size_t i = half; i < keys_.size(); ++i) MPI_Comm_free_keyval(&keys_[i].number);
  }

 private:
  template <class One>
  One& drawn(std::vector<One>& some) {
    return some[static_cast<std::size_t>(draws_.upTo(static_cast<int>(some.size()) - 1))];
  }
  static bool hasAttribute(MPI_Comm comm, const Key& key) {
    void* value = nullptr;
    int isThere = 0;
    MPI_Comm_get_attr(comm, key.number, &value, &isThere);
    tell("key", key.id, isThere != 0 ? "is" : "is not there", isThere != 0 ? numberOf(value) : 0);
    return isThere != 0;
  }
  void copy(MPI_Comm comm) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (draws_.upTo(3)) {
      case 0:
        MPI_Comm_dup(comm, &made);
        break;
      case 1:
        MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &made);
        break;
      case 2:
        MPI_Comm_idup(comm, &made, &request);
        useTold(comm, "one that is being copied");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
      default:  // has no attributes
        MPI_Comm_split(comm, 0, rankIn(comm), &made);
        break;
    }
    if (draws_.upTo(1) == 0) useTold(made, "a copy");
    for (const Key& key : keys_) hasAttribute(made, key);
    comms_.push_back(made);
    if (comms_.size() > 6) end(comms_[2]);
  }
  void end(MPI_Comm& comm) {
    if (comms_.size() < 3) return;
    draws_.upTo(1) == 0 ? MPI_Comm_free(&comm) : MPI_Comm_disconnect(&comm);
    std::erase(comms_, MPI_COMM_NULL);
  }

  Draws& draws_;
  std::vector<Key> keys_;
  std::vector<MPI_Comm> comms_;
  std::intptr_t value_ = 0;
};

/// Callbacks that return an error: the communicator that was to be copied or freed goes on.
void refuse(bool calls) {
  Key copied{10, MPI_KEYVAL_INVALID, Key::fails, false, calls}, kept{11, MPI_KEYVAL_INVALID, Key::never, true, calls};
  MPI_Comm comm = MPI_COMM_NULL, made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(copyTold, deleteTold, &copied.number, &copied);
  MPI_Comm_create_keyval(copyTold, deleteTold, &kept.number, &kept);
  useTold(comm, "one before callbacks that fail");
  MPI_Comm_set_attr(comm, copied.number, valueOf(1));
  tell("a copy fails:", MPI_Comm_dup(comm, &made) != MPI_SUCCESS);
  useTold(comm, "one that could not be copied");
  MPI_Comm_delete_attr(comm, copied.number);
  MPI_Comm_set_attr(comm, kept.number, valueOf(2));
  tell("a deletion fails:", MPI_Comm_delete_attr(comm, kept.number) != MPI_SUCCESS);
  useTold(comm, "one that keeps its attribute");
  MPI_Comm_free_keyval(&copied.number);
  MPI_Comm_free_keyval(&kept.number);
  MPI_Comm_free(&comm);
}

void tellPredefined() {
  for (const int key : {MPI_TAG_UB, MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_APPNUM, MPI_LASTUSEDCODE}) {
    void* value = nullptr;
    int isThere = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, static_cast<void*>(&value), &isThere);
    tell("predefined", isThere, isThere != 0 ? *static_cast<int*>(value) : 0);
  }
}

/// Those of the world and of MPI_COMM_SELF, as libraries set them to learn of the end: nobody else copies or deletes
/// them. MPI_Finalize deletes the last one first; rank 0 alone says so, as the lines are printed by then.
int sayLast(MPI_Comm comm, int /*number*/, void* value, void* /*state*/) {
  if (rankIn(MPI_COMM_WORLD) == 0)
    std::printf("at the end value %d on %s\n", static_cast<int>(numberOf(value)),
                comm == MPI_COMM_SELF ? "itself" : "others");
  std::fflush(stdout);
  return MPI_SUCCESS;
}

void leaveAttributes() {
  for (int value = 1; value <= 3; ++value) {
    int number = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, sayLast, &number, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, number, valueOf(value));
    MPI_Comm_free_keyval(&number);
  }
}

}  // namespace

void tellAttributes(Draws& draws) {
  tellPredefined();
  for (int program = 0; program < 4; ++program) {
    AttributeProgram one(draws);
    for (int step = 0; step < 40; ++step) one.step();
    one.finish();
  }
  for (const bool calls : {false, true}) refuse(calls);
  leaveAttributes();
}

namespace {

int copyOfType(MPI_Datatype /*type*/, int /*number*/, void* /*state*/, void* value, void* to, int* flag) {
  tell("copy of a type with", numberOf(value));
  *static_cast<void**>(to) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

int deleteOfType(MPI_Datatype /*type*/, int /*number*/, void* value, void* /*state*/) {
  tell("end of a type with", numberOf(value));
  return MPI_SUCCESS;
}

}  // namespace

void tellCallbacksOfTypes(Draws& draws) {
  int number = MPI_KEYVAL_INVALID;
  MPI_Type_create_keyval(copyOfType, deleteOfType, &number, nullptr);
  std::vector<MPI_Comm> comms = communicatorsOfAll();
  for (MPI_Comm comm : comms) useTold(comm, "one before types with attributes");
  for (int round = 0; round < 20; ++round) {
    MPI_Datatype pairs = MPI_DATATYPE_NULL, copy = MPI_DATATYPE_NULL;
    MPI_Type_vector(2, 1, 1 + draws.upTo(2), MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Type_set_attr(pairs, number, valueOf(round));
    const int ranks = ranksIn(MPI_COMM_WORLD), count = 1 + draws.upTo(20);
    std::vector<int> from(static_cast<std::size_t>(6 * count * ranks), round), to(from.size(), -1);
    MPI_Comm comm = comms[static_cast<std::size_t>(draws.upTo(1))];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(from.data(), count, pairs, to.data(), count, pairs, comm, &request);
    if (draws.upTo(1) == 0) MPI_Type_dup(pairs, &copy);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Alltoall(from.data(), count, pairs, to.data(), count, pairs, comm);
    MPI_Bcast(to.data(), count, pairs, draws.upTo(ranks - 1), comm);
    MPI_Type_free(&pairs);
    tell("round", round, "is over");
    if (copy != MPI_DATATYPE_NULL) MPI_Type_free(&copy);
    tellNumbers("types", to);
  }
  freeAll(comms);
  MPI_Type_free_keyval(&number);
}

}  // namespace tacc::test
