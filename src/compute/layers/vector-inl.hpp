// The convolutions' vectors, for the layers.
#include "compute/conv/vector-inl.hpp"
#include "compute/layers/kernels.hpp"

#ifndef TACC_LAYERS_VECTOR_INL
#define TACC_LAYERS_VECTOR_INL

namespace tacc::layers {
namespace TACC_CONV_ISA {

using conv::blockLength;
using conv::TACC_CONV_ISA::broadcast;
using conv::TACC_CONV_ISA::load;
using conv::TACC_CONV_ISA::maximum;
using conv::TACC_CONV_ISA::store;
using conv::TACC_CONV_ISA::Vector;

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers

#endif
