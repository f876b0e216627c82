#include "scheduler/service/watch_start.h"

namespace kiln::scheduler {

StatusOr<int64_t> IdBeforeTrial(store::Store& store, const std::string& job_id,
                                uint32_t from_trial) {
  if (from_trial == 0) return 0;
  int64_t before = 0;
  KILN_RETURN_IF_ERROR(store.Read([&](store::Store::Snapshot& snapshot) -> Status {
    KILN_ASSIGN_OR_RETURN(before, snapshot.IdBeforeTrial(job_id, from_trial, kMostInFlight));
    return OkStatus();
  }));
  return before;
}

}  // namespace kiln::scheduler
