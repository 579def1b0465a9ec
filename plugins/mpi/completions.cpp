// MPI's functions that test, wait for, start and free requests: MPI answers them, once it knows which of the operations
// behind requests that are taken over are done.
#include <algorithm>

#include "plugin.hpp"
#include "request_array.hpp"

using namespace tacc::mpi;

TACC_MPI_ENTRY taccMpi_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (!concernsOperations() || request == nullptr) return PMPI_Test(request, flag, status);
  const Inside inside;
  RequestArray array(1, request);
  array.completeDone();
  const int code = PMPI_Test(request, flag, status);
  if (code == MPI_SUCCESS && *flag == 0) array.letOthersRun();
  return array.codeOf(code, 0);
}

TACC_MPI_ENTRY taccMpi_Wait(MPI_Request* request, MPI_Status* status) {
  if (!concernsOperations() || request == nullptr) return PMPI_Wait(request, status);
  const Inside inside;
  RequestArray array(1, request);
  array.completeAll();
  return array.codeOf(PMPI_Wait(request, status), 0);
}

TACC_MPI_ENTRY taccMpi_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (!concernsOperations()) return PMPI_Testall(count, requests, flag, statuses);
  const Inside inside;
  RequestArray array(count, requests);
  array.completeDone();
  const int code = PMPI_Testall(count, requests, flag, statuses);
  if (code == MPI_SUCCESS && *flag == 0) array.letOthersRun();
  return code == MPI_SUCCESS && *flag != 0 ? array.codeOfSeveral(code, count, nullptr, statuses) : code;
}

TACC_MPI_ENTRY taccMpi_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (!concernsOperations()) return PMPI_Waitall(count, requests, statuses);
  const Inside inside;
  RequestArray array(count, requests);
  array.completeAll();
  return array.codeOfSeveral(PMPI_Waitall(count, requests, statuses), count, nullptr, statuses);
}

TACC_MPI_ENTRY taccMpi_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (!concernsOperations()) return PMPI_Testany(count, requests, index, flag, status);
  const Inside inside;
  RequestArray array(count, requests);
  array.completeDone();
  const int code = PMPI_Testany(count, requests, index, flag, status);
  if (code == MPI_SUCCESS && *flag == 0) array.letOthersRun();
  return code == MPI_SUCCESS && *flag != 0 ? array.codeOf(code, *index) : code;
}

TACC_MPI_ENTRY taccMpi_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (!concernsOperations()) return PMPI_Waitany(count, requests, index, status);
  const Inside inside;
  RequestArray array(count, requests);
  if (!array.hasOperations() || index == nullptr) return PMPI_Waitany(count, requests, index, status);
  int flag = 0;
  const int code =
      array.askUntil([&] { return PMPI_Testany(count, requests, index, &flag, status); }, [&] { return flag != 0; });
  return array.codeOf(code, *index);
}

TACC_MPI_ENTRY taccMpi_Testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  if (!concernsOperations()) return PMPI_Testsome(count, requests, completed, indices, statuses);
  const Inside inside;
  RequestArray array(count, requests);
  array.completeDone();
  const int code = PMPI_Testsome(count, requests, completed, indices, statuses);
  if (code == MPI_SUCCESS && *completed == 0) array.letOthersRun();
  return code == MPI_SUCCESS ? array.codeOfSeveral(code, std::max(*completed, 0), indices, statuses) : code;
}

TACC_MPI_ENTRY taccMpi_Waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  if (!concernsOperations()) return PMPI_Waitsome(count, requests, completed, indices, statuses);
  const Inside inside;
  RequestArray array(count, requests);
  if (!array.hasOperations() || completed == nullptr || indices == nullptr)
    return PMPI_Waitsome(count, requests, completed, indices, statuses);
  const int code = array.askUntil([&] { return PMPI_Testsome(count, requests, completed, indices, statuses); },
                                  [&] { return *completed != 0; });  // MPI_UNDEFINED where none is active
  return code == MPI_SUCCESS ? array.codeOfSeveral(code, std::max(*completed, 0), indices, statuses) : code;
}

TACC_MPI_ENTRY taccMpi_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (!concernsOperations()) return PMPI_Request_get_status(request, flag, status);
  const Inside inside;
  RequestArray array(1, &request);
  array.completeDone();
  return array.codeOf(PMPI_Request_get_status(request, flag, status), 0);
}

TACC_MPI_ENTRY taccMpi_Request_free(MPI_Request* request) {
  if (!concernsOperations() || request == nullptr) return PMPI_Request_free(request);
  const Inside inside;
  Operation* const operation = plugin().requests.find(*request);
  return operation == nullptr ? PMPI_Request_free(request) : plugin().requests.free(*operation, request);
}

/// MPI cancels no collectives. What stands for one is a receive, which it would.
TACC_MPI_ENTRY taccMpi_Cancel(MPI_Request* request) {
  if (!concernsOperations() || request == nullptr) return PMPI_Cancel(request);
  const Inside inside;
  const Operation* const operation = plugin().requests.find(*request);
  return operation == nullptr ? PMPI_Cancel(request) : plugin().requests.refuseToCancel(*operation);
}

TACC_MPI_ENTRY taccMpi_Start(MPI_Request* request) {
  if (!concernsOperations() || request == nullptr) return PMPI_Start(request);
  const Inside inside;
  Operation* const operation = plugin().requests.find(*request);
  return operation == nullptr ? PMPI_Start(request) : plugin().requests.start(*operation);
}

TACC_MPI_ENTRY taccMpi_Startall(int count, MPI_Request* requests) {
  if (!concernsOperations() || !RequestArray(count, requests).hasOperations()) return PMPI_Startall(count, requests);
  for (int i = 0; i < count; ++i)
    if (const int code = taccMpi_Start(&requests[i]); code != MPI_SUCCESS) return code;
  return MPI_SUCCESS;
}
