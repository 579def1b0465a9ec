// The C functions for what belongs to a communicator: registered buffers and operators.
#include <algorithm>
#include <memory>
#include <utility>

#include "api/boundary.hpp"
#include "api/check.hpp"
#include "api/handles.hpp"
#include "compute/reduce/reduce.hpp"
#include "core/error.hpp"
#include "core/types.hpp"

using tacc::Entry;
using tacc::guard;
using tacc::guardLong;

taccResult_t taccCommRegister(taccComm_t comm, void* buffer, size_t bytes, void** handle) {
  return guardLong("taccCommRegister", comm, [&] {
    const Entry entry(comm);
    tacc::checkPointer(buffer, "buffer");
    tacc::checkPointer(handle, "handle");
    if (bytes == 0) tacc::fail(taccInvalidArgument, "bytes is 0; a registered buffer has at least one byte");
    comm->waitForStreams();
    auto registration = std::make_unique<tacc::Registration>(tacc::Registration{buffer});
    comm->registrations.reserve(comm->registrations.size() + 1);
    comm->communicator->registerBuffer(buffer, bytes);
    *handle = registration.get();
    comm->registrations.push_back(std::move(registration));
  });
}

taccResult_t taccCommDeregister(taccComm_t comm, void* handle) {
  return guardLong("taccCommDeregister", comm, [&] {
    const Entry entry(comm);
    auto& all = comm->registrations;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& registration) { return registration.get() == handle; });
    if (found == all.end()) {
      tacc::fail(taccInvalidArgument, "handle {} is not one that taccCommRegister gave for this communicator", handle);
    }
    comm->waitForStreams();
    const std::unique_ptr<tacc::Registration> gone = std::move(*found);
    all.erase(found);
    const bool last =
        std::none_of(all.begin(), all.end(), [&](const auto& other) { return other->buffer == gone->buffer; });
    if (last) comm->communicator->deregisterBuffer(gone->buffer);
  });
}

taccResult_t taccRedOpCreatePreMulSum(taccRedOp_t* op, void* scalar, taccDataType_t datatype,
                                      taccScalarResidence_t residence, taccComm_t comm) {
  return guard("taccRedOpCreatePreMulSum", comm, [&] {
    const Entry entry(comm);
    tacc::checkPointer(op, "op");
    tacc::checkPointer(scalar, "scalar");
    tacc::checkType(datatype);
    if (residence != taccScalarDevice && residence != taccScalarHostImmediate) {
      tacc::fail(taccInvalidArgument, "residence {} is unknown; valid are 0 (device) and 1 (host immediate)",
                 static_cast<int>(residence));
    }
    if (!tacc::hasOperation(datatype, taccMax))
      tacc::fail(taccInvalidArgument, "datatype {} cannot be multiplied by a factor; real numbers can",
                 tacc::nameOf(datatype));
    *op = comm->operators.create(scalar, datatype);
  });
}

taccResult_t taccRedOpCreateUser(taccRedOp_t* op, taccReductionFunction function, void* context, int commutative,
                                 taccComm_t comm) {
  return guard("taccRedOpCreateUser", comm, [&] {
    const Entry entry(comm);
    tacc::checkPointer(op, "op");
    if (function == nullptr) tacc::fail(taccInvalidArgument, "function is NULL");
    *op = comm->operators.create(tacc::UserReduction{function, context, commutative != 0});
  });
}

taccResult_t taccRedOpDestroy(taccRedOp_t op, taccComm_t comm) {
  return guard("taccRedOpDestroy", comm, [&] {
    const Entry entry(comm);
    comm->operators.destroy(op);
  });
}
