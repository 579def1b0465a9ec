#include "elements.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "types.hpp"

namespace tacc::mpi {
namespace {

constexpr std::size_t packedAtOnce = std::size_t{1} << 30;  // MPI_Pack counts bytes in int

std::ptrdiff_t extentOf(MPI_Datatype type) {
  MPI_Count low = 0, extent = 0;
  PMPI_Type_get_extent_x(type, &low, &extent);
  return static_cast<std::ptrdiff_t>(extent);
}

/// Elements whose places count from MPI_BOTTOM, which is null: MPICH's MPI_Pack refuses that address, and Open MPI's
/// takes it for a buffer. The same elements seen from another address, as one element of a type.
class FromElsewhere {
 public:
  FromElsewhere(int count, MPI_Datatype type) {
    const MPI_Aint place = -static_cast<MPI_Aint>(reinterpret_cast<std::uintptr_t>(address()));
    if (PMPI_Type_create_hindexed(1, &count, &place, type, &type_) != MPI_SUCCESS ||
        PMPI_Type_commit(&type_) != MPI_SUCCESS)
      throw std::runtime_error("MPI makes no type of the elements of a derived type");
  }
  ~FromElsewhere() { PMPI_Type_free(&type_); }
  FromElsewhere(const FromElsewhere&) = delete;
  FromElsewhere& operator=(const FromElsewhere&) = delete;
  static void* address() noexcept {
    static std::byte here;
    return &here;
  }
  MPI_Datatype type() const noexcept { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// So many bytes as one element, for what counts in int.
class ManyBytes {
 public:
  explicit ManyBytes(std::size_t bytes) {
    constexpr std::size_t chunk = std::size_t{1} << 20;
    const std::array<int, 2> lengths{static_cast<int>(bytes / chunk), static_cast<int>(bytes % chunk)};
    const std::array<MPI_Aint, 2> places{0, static_cast<MPI_Aint>(bytes - bytes % chunk)};
    MPI_Datatype chunkType = MPI_DATATYPE_NULL;
    if (PMPI_Type_contiguous(static_cast<int>(chunk), MPI_BYTE, &chunkType) != MPI_SUCCESS)
      throw std::runtime_error("MPI makes no type of a MiB");
    const std::array<MPI_Datatype, 2> types{chunkType, MPI_BYTE};
    const bool isMade =
        PMPI_Type_create_struct(2, lengths.data(), places.data(), types.data(), &type_) == MPI_SUCCESS &&
        PMPI_Type_commit(&type_) == MPI_SUCCESS;
    PMPI_Type_free(&chunkType);
    if (!isMade) throw std::runtime_error("MPI makes no type of " + std::to_string(bytes) + " bytes");
  }
  ~ManyBytes() { PMPI_Type_free(&type_); }
  ManyBytes(const ManyBytes&) = delete;
  ManyBytes& operator=(const ManyBytes&) = delete;
  MPI_Datatype type() const noexcept { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// One element from an address to another, each seen by a type of its own, by a message that nobody else can match:
/// there is no MPI_Pack with large counts in all MPIs.
void moveElement(void* from, MPI_Datatype fromType, void* to, MPI_Datatype toType) {
  MPI_Comm self = MPI_COMM_NULL;
  MPI_Group alone = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_SELF, &alone);
  // No duplicate, which would call what copies the program's attributes.
  int code = PMPI_Comm_create(MPI_COMM_SELF, alone, &self);
  PMPI_Group_free(&alone);
  if (code == MPI_SUCCESS) {
    code = PMPI_Sendrecv(from, 1, fromType, 0, 0, to, 1, toType, 0, 0, self, MPI_STATUS_IGNORE);
    PMPI_Comm_free(&self);
  }
  if (code != MPI_SUCCESS) throw std::runtime_error("MPI does not move an element of a derived type");
}

/// Whether elements are too long to be counted by MPI_Pack. Then `move(address, packed)` has been called for each.
template <class Move>
bool areMovedSingly(const Elements& elements, std::byte* packed, const Move& move) {
  const std::size_t each = bytesOfJudged(elements.type);
  if (each <= packedAtOnce) return false;
  for (std::size_t i = 0; i < elements.count; ++i)
    move(elements.movedBy(static_cast<std::ptrdiff_t>(i)).address, packed + i * each);
  return true;
}

/// Calls `move(address, count, type, packed, length)` for parts that MPI_Pack can count.
template <class Move>
void inParts(const Elements& elements, std::byte* packed, const Move& move) {
  const std::size_t each = bytesOfJudged(elements.type);
  if (each == 0) return;
  const std::ptrdiff_t extent = extentOf(elements.type);
  for (std::size_t done = 0; done < elements.count;) {
    const std::size_t count = std::min(elements.count - done, packedAtOnce / each);
    const auto at = reinterpret_cast<std::uintptr_t>(elements.address) + done * static_cast<std::uintptr_t>(extent);
    std::byte* const part = packed + done * each;
    const auto whole = static_cast<int>(count), length = static_cast<int>(count * each);
    const std::optional<FromElsewhere> moved =
        at == 0 ? std::optional<FromElsewhere>(std::in_place, whole, elements.type) : std::nullopt;
    const int code = moved ? move(FromElsewhere::address(), 1, moved->type(), part, length)
                           : move(reinterpret_cast<void*>(at), whole, elements.type, part, length);
    if (code != MPI_SUCCESS) throw std::runtime_error("MPI does not pack or unpack the elements of a derived type");
    done += count;
  }
}

void pack(const Elements& elements, std::byte* packed) {
  const auto moveOut = [&](void* at, std::byte* to) {
    moveElement(at, elements.type, to, ManyBytes(bytesOfJudged(elements.type)).type());
  };
  if (areMovedSingly(elements, packed, moveOut)) return;
  inParts(elements, packed, [&](void* at, int count, MPI_Datatype type, std::byte* to, int bytes) {
    int position = 0;
    const int code = PMPI_Pack(at, count, type, to, bytes, &position, MPI_COMM_SELF);
    return code == MPI_SUCCESS && position != bytes ? MPI_ERR_OTHER : code;
  });
}

void unpack(const Elements& elements, std::byte* packed) {
  const auto moveIn = [&](void* at, std::byte* from) {
    moveElement(from, ManyBytes(bytesOfJudged(elements.type)).type(), at, elements.type);
  };
  if (areMovedSingly(elements, packed, moveIn)) return;
  inParts(elements, packed, [&](void* at, int count, MPI_Datatype type, std::byte* from, int bytes) {
    int position = 0;
    return PMPI_Unpack(from, bytes, &position, at, count, type, MPI_COMM_SELF);
  });
}

}  // namespace

Elements Elements::movedBy(std::ptrdiff_t extents) const {
  const std::ptrdiff_t step = extents == 0 ? 0 : extents * extentOf(type);
  return {reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) + static_cast<std::uintptr_t>(step)), count,
          type};
}

void copyInto(const Elements& elements, std::byte* block) {
  if (!isBlock(elements.type)) return pack(elements, block);
  if (block != elements.address) std::memcpy(block, elements.address, elements.bytes());
}

void copyFrom(std::byte* block, const Elements& elements) {
  if (!isBlock(elements.type)) return unpack(elements, block);
  if (block != elements.address) std::memcpy(elements.address, block, elements.bytes());
}

bool arePackedPlainly() {
  // Out of order and with a gap: 2, 0 of 0, 1, 2.
  const std::array<int, 2> lengths{1, 1}, places{2, 0};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (PMPI_Type_indexed(2, lengths.data(), places.data(), MPI_INT, &type) != MPI_SUCCESS) return false;
  PMPI_Type_commit(&type);
  std::array<int, 3> numbers{10, 11, 12};
  std::array<int, 2> packed{};
  bool isPlain = true;
  try {
    pack({numbers.data(), 1, type}, reinterpret_cast<std::byte*>(packed.data()));
  } catch (const std::runtime_error&) {
    isPlain = false;
  }
  PMPI_Type_free(&type);
  return isPlain && packed == std::array<int, 2>{12, 10};
}

void Block::copy(Use use) {
  copy_ = std::make_unique_for_overwrite<std::byte[]>(elements_.bytes());
  data_ = copy_.get();
  if (use != Use::write) pack(elements_, data_);
}

void Block::keepApart(const Block& written, std::size_t inPlace) {
  const auto at = reinterpret_cast<std::uintptr_t>(data_), to = reinterpret_cast<std::uintptr_t>(written.data_);
  const std::size_t bytes = elements_.bytes();
  if (copy_ || at == to + inPlace || at >= to + written.elements_.bytes() || to >= at + bytes) return;
  copy_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::memcpy(copy_.get(), data_, bytes);
  data_ = copy_.get();
}

void Block::unpack() const { mpi::unpack(elements_, copy_.get()); }

std::size_t sizeOf(taccDataType_t type) noexcept {
  switch (type) {
    case taccInt8:
    case taccUint8:
    case taccBool:
      return 1;
    case taccInt16:
    case taccUint16:
    case taccFloat16:
    case taccBfloat16:
      return 2;
    case taccInt32:
    case taccUint32:
    case taccFloat32:
      return 4;
    case taccComplex128:
    case taccDoubleInt:
    case taccLongInt:
      return 16;
    default:
      return 8;
  }
}

}  // namespace tacc::mpi
