// The instruction sets that the kernels exist for, which of them this CPU has, and the choice among them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tacc {

struct Isa {
  std::string_view name;  // as in TACC_ISA: scalar, sse4, avx2, avx512, neon; amx is a matter of convolutions
  std::int64_t target;    // Highway's bit for it
};

/// The instruction sets that are compiled in and that this CPU has, best first. Never empty.
std::vector<Isa> availableIsas();

/// The best available one that is not wider than `widest`, a name or "best". Throws when the name is unknown or belongs
/// to another kind of CPU.
Isa bestIsa(std::string_view widest);

/// bestIsa() of the environment variable TACC_ISA.
Isa chooseIsa();

}  // namespace tacc
