#include "scheduler/pages/job_statuses.h"

#include <utility>

#include "scheduler/values/messages.h"

namespace kiln::scheduler {

bool JobStatuses::IsYoung(const store::JobRow& job, const Entry& entry) const {
  if (entry.seen == nullptr || entry.seen->status.state() != static_cast<v1::JobState>(job.state)) {
    return false;
  }
  const absl::Duration most = store::IsFinal(job.state) ? options_.final_age : options_.age;
  return clock_.MonotonicSeconds() - entry.read_at_s < absl::ToDoubleSeconds(most);
}

std::shared_ptr<const SeenJob> JobStatuses::Known(const store::JobRow& job) {
  const std::shared_ptr<Entry> entry = entries_.Get(job.id);
  const std::lock_guard lock(entry->mutex);
  return IsYoung(job, *entry) ? entry->seen : nullptr;
}

StatusOr<std::shared_ptr<const SeenJob>> JobStatuses::Of(const store::JobRow& job) {
  const std::shared_ptr<Entry> entry = entries_.Get(job.id);
  const std::lock_guard lock(entry->mutex);
  if (IsYoung(job, *entry)) return entry->seen;
  const double now_s = clock_.MonotonicSeconds();
  auto seen = std::make_shared<SeenJob>();
  KILN_ASSIGN_OR_RETURN(seen->status, read_(job));
  DropDagTexts(seen->status);
  // The rounds that were read before are not read again.
  if (entry->seen != nullptr) seen->curve = entry->seen->curve;
  KILN_RETURN_IF_ERROR(ReadRounds(store_, job.id, seen->curve));
  entry->seen = std::move(seen);
  entry->read_at_s = now_s;
  return entry->seen;
}

}  // namespace kiln::scheduler
