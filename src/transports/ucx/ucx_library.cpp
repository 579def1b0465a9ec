#include "transports/ucx/ucx_library.hpp"

#include <csignal>
#include <cstdlib>

#include "core/loaded_library.hpp"

namespace tacc {
namespace {

/// UCX takes over the signals of faults, and SIGHUP, in its library's constructor: before anything can be configured.
void giveSignalsBack(const UcxLibrary& functions) {
  if (std::getenv("UCX_HANDLE_ERRORS") != nullptr || std::getenv("UCX_ERROR_SIGNALS") != nullptr) return;
  for (const int signal : {SIGHUP, SIGILL, SIGBUS, SIGFPE, SIGSEGV}) functions.debugDisableSignal(signal);
}

UcxLibrary loadUcx() {
  // It brings libucs.so.0, whose functions are found through it.
  const LoadedLibrary library("libucp.so.0", "Debian's libucx0 has it");
  UcxLibrary functions{};
  library.find(functions.amSendNbx, "ucp_am_send_nbx");
  library.find(functions.cleanup, "ucp_cleanup");
  library.find(functions.configModify, "ucp_config_modify");
  library.find(functions.configRead, "ucp_config_read");
  library.find(functions.configRelease, "ucp_config_release");
  library.find(functions.contextPrintInfo, "ucp_context_print_info");
  library.find(functions.contextQuery, "ucp_context_query");
  library.find(functions.epCloseNbx, "ucp_ep_close_nbx");
  library.find(functions.epCreate, "ucp_ep_create");
  library.find(functions.getVersion, "ucp_get_version");
  library.find(functions.initVersion, "ucp_init_version");
  library.find(functions.requestCancel, "ucp_request_cancel");
  library.find(functions.requestCheckStatus, "ucp_request_check_status");
  library.find(functions.requestFree, "ucp_request_free");
  library.find(functions.tagRecvNbx, "ucp_tag_recv_nbx");
  library.find(functions.tagSendNbx, "ucp_tag_send_nbx");
  library.find(functions.workerArm, "ucp_worker_arm");
  library.find(functions.workerCreate, "ucp_worker_create");
  library.find(functions.workerDestroy, "ucp_worker_destroy");
  library.find(functions.workerFlushNbx, "ucp_worker_flush_nbx");
  library.find(functions.workerGetEfd, "ucp_worker_get_efd");
  library.find(functions.workerProgress, "ucp_worker_progress");
  library.find(functions.workerQuery, "ucp_worker_query");
  library.find(functions.workerReleaseAddress, "ucp_worker_release_address");
  library.find(functions.workerSetAmRecvHandler, "ucp_worker_set_am_recv_handler");
  library.find(functions.debugDisableSignal, "ucs_debug_disable_signal");
  library.find(functions.globalOptsSetValue, "ucs_global_opts_set_value");
  library.find(functions.statusString, "ucs_status_string");
  giveSignalsBack(functions);
  return functions;
}

}  // namespace

const UcxLibrary& ucx() {
  static const UcxLibrary functions = loadUcx();
  return functions;
}

}  // namespace tacc
