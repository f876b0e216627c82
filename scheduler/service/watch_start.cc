#include "scheduler/service/watch_start.h"

#include <algorithm>
#include <vector>

namespace kiln::scheduler {

StatusOr<int64_t> IdBeforeTrial(store::Store& store, const std::string& job_id,
                                uint32_t from_trial) {
  if (from_trial <= kMostInFlight) return 0;
  std::vector<int64_t> ids;
  KILN_RETURN_IF_ERROR(store.Read([&](store::Store::Snapshot& snapshot) -> Status {
    const store::RecordFilter filter{.job_id = job_id, .include_errors = true};
    KILN_ASSIGN_OR_RETURN(ids, snapshot.Ids(filter, {}, from_trial - kMostInFlight));
    return OkStatus();
  }));
  // The counts are read after the ids: a record that is deleted in between counts as missing.
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, store.CountTrials(job_id));
  const int64_t missing = std::max<int64_t>(0, int64_t{counts.next_trial} - counts.total);
  const int64_t earlier = std::min(int64_t{from_trial} - kMostInFlight - missing, std::ssize(ids));
  return earlier > 0 ? ids[static_cast<size_t>(earlier - 1)] : 0;
}

}  // namespace kiln::scheduler
