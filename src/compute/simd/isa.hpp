// The instruction sets that the kernels exist for, which of them this CPU has, and the choice among them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tacc {

/// A row of TACC_INSTRUCTION_SETS (core/instruction_sets.hpp).
struct InstructionSet {
  std::string_view name;     // as in TACC_ISA
  std::int64_t targets;      // Highway's bits for it; 0: it has no vectors
  std::string_view kernels;  // of convolutions and layers
};

/// The rows from `widest` on, a name or "best": all. Throws taccInvalidArgument when the name is unknown.
std::span<const InstructionSet> instructionSetsFrom(std::string_view widest);

/// One that reductions are compiled for.
struct Isa {
  std::string_view name;  // as in TACC_ISA
  std::int64_t target;    // Highway's bit for it
};

/// The instruction sets of reductions that are compiled in and that this CPU has, best first. Never empty.
std::vector<Isa> availableIsas();

/// The best available one that is not wider than `widest`, a name or "best". Throws taccInvalidArgument when the name
/// is unknown or belongs to another kind of CPU.
Isa bestIsa(std::string_view widest);

/// bestIsa() of the environment variable TACC_ISA.
Isa chooseIsa();

}  // namespace tacc
