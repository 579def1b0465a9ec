/* The public header is plain C11, and every function has the type that is written down here a second time. */
#include <tacc/center.h>

static const struct {
  taccResult_t (*create)(taccCenter_t*, taccUniqueId*, size_t, const float*, const taccCenterConfig_t*);
  taccResult_t (*connect)(taccCenter_t*, const taccUniqueId*, size_t, const taccCenterConfig_t*);
  taccResult_t (*exchange)(taccCenter_t, float*, float);
  taccResult_t (*read)(taccCenter_t, float*);
  taccResult_t (*write)(taccCenter_t, const float*);
  taccResult_t (*info)(taccCenter_t, taccCenterInfo_t*);
  taccResult_t (*destroy)(taccCenter_t);
} functions = {taccCenterCreate, taccCenterConnect, taccCenterExchange, taccCenterRead,
               taccCenterWrite,  taccCenterInfo,    taccCenterDestroy};

int centerHeaderIsC(void);
int centerHeaderIsC(void) {
  taccCenterConfig_t config = TACC_CENTER_CONFIG_INITIALIZER;
  taccUniqueId id;
  taccCenter_t kept = NULL, worker = NULL;
  float weights[3] = {4, 8, 12}, now[3] = {0, 0, 0};
  taccCenterInfo_t info;
  int wrong = 0;
  info.size = sizeof info;
  wrong += config.size != sizeof config || config.locked != 1 || config.servesHosts != 1 || config.timeout != 30;
  wrong += functions.create(&kept, &id, 3, NULL, &config) != taccSuccess;
  wrong += functions.connect(&worker, &id, 3, NULL) != taccSuccess;
  wrong += functions.exchange(worker, weights, 0.5f) != taccSuccess || weights[2] != 6;
  wrong += functions.read(kept, now) != taccSuccess || now[0] != 2 || now[2] != 6;
  wrong += functions.write(kept, weights) != taccSuccess;
  wrong += functions.info(worker, &info) != taccSuccess || info.updates != 1 || info.ownUpdates != 1 ||
           info.workers != 1 || info.count != 3 || info.locked != 1 || info.remote != 0 || info.bytes != 24;
  wrong += functions.destroy(worker) != taccSuccess || functions.destroy(kept) != taccSuccess;
  wrong += functions.destroy(NULL) != taccSuccess;
  return wrong;
}
