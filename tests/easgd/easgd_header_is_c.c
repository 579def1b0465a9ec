/* The public header is plain C11, and every function has the type that is written down here a second time. */
#include <tacc/easgd.h>

static const struct {
  taccResult_t (*create)(taccEasgd_t*, float*, size_t, taccComm_t, const taccEasgdConfig_t*);
  taccResult_t (*createTensors)(taccEasgd_t*, const size_t*, int, taccComm_t, const taccEasgdConfig_t*);
  taccResult_t (*createAtCenter)(taccEasgd_t*, float*, size_t, const taccUniqueId*, const taccEasgdConfig_t*);
  taccResult_t (*getCenterId)(taccEasgd_t, taccUniqueId*);
  taccResult_t (*createAtCenters)(taccEasgd_t*, float*, size_t, const taccUniqueId*, int, const taccEasgdConfig_t*);
  taccResult_t (*getCenterIds)(taccEasgd_t, taccUniqueId*, int*);
  taccResult_t (*getTensor)(taccEasgd_t, int, float**, float**);
  taccResult_t (*start)(taccEasgd_t);
  taccResult_t (*step)(taccEasgd_t, const float*);
  taccResult_t (*exchange)(taccEasgd_t);
  taccResult_t (*center)(taccEasgd_t, float*);
  taccResult_t (*setLearningRate)(taccEasgd_t, float);
  taccResult_t (*info)(taccEasgd_t, taccEasgdInfo_t*);
  taccResult_t (*save)(taccEasgd_t, const char*);
  taccResult_t (*load)(taccEasgd_t, const char*);
  taccResult_t (*destroy)(taccEasgd_t);
  taccResult_t (*allReduceUpdate)(const float*, float*, float*, size_t, float, float, taccComm_t);
  const char* (*modeName)(taccEasgdMode_t);
} functions = {taccEasgdCreate,
               taccEasgdCreateTensors,
               taccEasgdCreateAtCenter,
               taccEasgdGetCenterId,
               taccEasgdCreateAtCenters,
               taccEasgdGetCenterIds,
               taccEasgdGetTensor,
               taccEasgdStart,
               taccEasgdStep,
               taccEasgdExchange,
               taccEasgdCenter,
               taccEasgdSetLearningRate,
               taccEasgdInfo,
               taccEasgdSave,
               taccEasgdLoad,
               taccEasgdDestroy,
               taccAllReduceUpdate,
               taccEasgdModeName};

int easgdHeaderIsC(taccComm_t comm);
int easgdHeaderIsC(taccComm_t comm) {
  taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
  float weights[3] = {4, 8, 12}, gradients[3] = {100, 0, 0}, center[3];
  taccEasgd_t easgd = NULL;
  int wrong = 0;
  wrong += config.size != sizeof config || config.mode != taccEasgdSync2 || config.period != 1;
  wrong += functions.create(&easgd, weights, 3, comm, &config) != taccSuccess;
  wrong += functions.start(easgd) != taccSuccess || functions.step(easgd, gradients) != taccSuccess;
  wrong += weights[0] != 3 || weights[1] != 8;
  wrong += functions.center(easgd, center) != taccSuccess || center[0] != 4;
  wrong += functions.destroy(easgd) != taccSuccess;
  wrong += functions.modeName(taccEasgdNumModes) != NULL;
  return wrong;
}
