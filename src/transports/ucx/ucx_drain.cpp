#include "transports/ucx/ucx_drain.hpp"

namespace tacc {
namespace {

constexpr unsigned emptyMessage = 0;  // the id of the active message

ucs_status_t dropMessage(void*, const void*, std::size_t, void*, std::size_t, const ucp_am_recv_param_t*) {
  return UCS_OK;
}

bool hasGone(ucp_ep_h endpoint) {
  ucp_request_param_t atOnce = {};
  atOnce.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
  const ucs_status_ptr_t status = ucx().amSendNbx(endpoint, emptyMessage, nullptr, 0, nullptr, 0, &atOnce);
  return UCS_PTR_STATUS(status) != UCS_ERR_NO_RESOURCE;
}

}  // namespace

ucs_status_t UcxDrain::start(ucp_worker_h worker) {
  worker_ = worker;
  ucp_am_handler_param_t handler = {};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
  handler.id = emptyMessage;
  handler.cb = dropMessage;
  return ucx().workerSetAmRecvHandler(worker_, &handler);
}

bool UcxDrain::isDone() {
  if (flush_ != nullptr && ucx().requestCheckStatus(flush_) != UCS_INPROGRESS)
    ucx().requestFree(std::exchange(flush_, nullptr));
  bool nothingIsLeft = false;
  if (flush_ == nullptr) {
    const ucp_request_param_t none = {};
    flush_ = ucx().workerFlushNbx(worker_, &none);
    nothingIsLeft = !UCS_PTR_IS_PTR(flush_);
    if (nothingIsLeft) flush_ = nullptr;
  }
  std::erase_if(sent_, [&](const Sent& sent) {
    if (!nothingIsLeft && !hasGone(sent.endpoint)) return false;
    isSent_[sent.peer] = false;
    return true;
  });
  return sent_.empty();
}

}  // namespace tacc
