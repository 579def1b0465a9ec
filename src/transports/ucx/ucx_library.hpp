// The functions of UCX that tacc uses; UCX is loaded at their first use.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

namespace tacc {

struct UcxLibrary {
  decltype(&::ucp_am_send_nbx) amSendNbx;
  decltype(&::ucp_cleanup) cleanup;
  decltype(&::ucp_config_modify) configModify;
  decltype(&::ucp_config_read) configRead;
  decltype(&::ucp_config_release) configRelease;
  decltype(&::ucp_context_print_info) contextPrintInfo;
  decltype(&::ucp_context_query) contextQuery;
  decltype(&::ucp_ep_close_nbx) epCloseNbx;
  decltype(&::ucp_ep_create) epCreate;
  decltype(&::ucp_get_version) getVersion;
  decltype(&::ucp_init_version) initVersion;
  decltype(&::ucp_request_cancel) requestCancel;
  decltype(&::ucp_request_check_status) requestCheckStatus;
  decltype(&::ucp_request_free) requestFree;
  decltype(&::ucp_tag_recv_nbx) tagRecvNbx;
  decltype(&::ucp_tag_send_nbx) tagSendNbx;
  decltype(&::ucp_worker_arm) workerArm;
  decltype(&::ucp_worker_create) workerCreate;
  decltype(&::ucp_worker_destroy) workerDestroy;
  decltype(&::ucp_worker_flush_nbx) workerFlushNbx;
  decltype(&::ucp_worker_get_efd) workerGetEfd;
  decltype(&::ucp_worker_progress) workerProgress;
  decltype(&::ucp_worker_query) workerQuery;
  decltype(&::ucp_worker_release_address) workerReleaseAddress;
  decltype(&::ucp_worker_set_am_recv_handler) workerSetAmRecvHandler;
  decltype(&::ucs_debug_disable_signal) debugDisableSignal;
  decltype(&::ucs_global_opts_set_value) globalOptsSetValue;
  decltype(&::ucs_status_string) statusString;
};

/// Throws taccSystemError where it cannot be loaded.
const UcxLibrary& ucx();

}  // namespace tacc
