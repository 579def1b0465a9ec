/* tacc for C++20: thin wrappers of tacc/tacc.h, header only. Handles end with their objects, errors are exceptions,
 * counts and types come from the buffers.
 *
 *   taccxx::Communicator comm = taccxx::Communicator::initEnv();
 *   std::vector<float> gradients = ...;
 *   comm.allReduce(gradients, taccAvg);
 *
 * A buffer is any contiguous range of numbers that lives elsewhere: a std::span, or a vector or array by name. What
 * holds for a call in tacc.h holds for its wrapper, which is named like it without "tacc" and "Comm".
 *
 * The namespace is not `tacc`: the library has that inside, with classes that are called Communicator and Error too,
 * and two classes of one name in a program that has both (the library's own tests and tools) would be one to the
 * linker. Whatever is missing here is done with get() and the C function.
 */
#ifndef TACC_TACC_HPP
#define TACC_TACC_HPP

#if __cplusplus < 201709L /* C++20 as compilers had it that did not have all of it */
#error "tacc/tacc.hpp is C++20: compile with -std=c++20, or include tacc/tacc.h"
#elif !defined(__cpp_exceptions)
#error "tacc/tacc.hpp throws exceptions: compile without -fno-exceptions, or include tacc/tacc.h"
#else

#include "tacc/cxx/bucket.hpp"
#include "tacc/cxx/communicator.hpp"
#include "tacc/cxx/element.hpp"
#include "tacc/cxx/error.hpp"
#include "tacc/cxx/group.hpp"
#include "tacc/cxx/memory.hpp"
#include "tacc/cxx/request.hpp"
#include "tacc/cxx/stream.hpp"

#endif
#endif
