#include "scheduler/service/watch_start.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace kiln::scheduler {
namespace {

// Returns the largest id of the job's records; 0: it has none.
StatusOr<int64_t> LastId(store::Store& store, const std::string& job_id) {
  int64_t last = 0;
  KILN_RETURN_IF_ERROR(store.Read([&](store::Store::Snapshot& snapshot) -> Status {
    const store::RecordFilter filter{.job_id = job_id, .include_errors = true};
    KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                          snapshot.Ids(filter, {}, std::numeric_limits<uint32_t>::max()));
    if (!ids.empty()) last = ids.back();
    return OkStatus();
  }));
  return last;
}

}  // namespace

StatusOr<int64_t> IdBeforeTrial(store::Store& store, const std::string& job_id, uint32_t from_trial,
                                uint32_t trials_done) {
  if (from_trial == 0) return 0;
  const bool is_behind_all = from_trial >= trials_done;
  if (!is_behind_all && trials_done - from_trial > kFewTrials) return 0;
  // This id is read before the records, so a record that comes in between has a larger one.
  int64_t before = 0;
  if (is_behind_all) {
    KILN_ASSIGN_OR_RETURN(before, LastId(store, job_id));
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records,
                        store.RecordsOfJob(job_id, from_trial));
  if (records.empty()) return before;
  return std::ranges::min(records, {}, &store::Record::id).id - 1;
}

}  // namespace kiln::scheduler
