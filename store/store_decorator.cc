#include "store/store_decorator.h"

#include <type_traits>

namespace kiln::store {
namespace {

Status StatusOf(const Status& status) { return status; }
template <typename T>
Status StatusOf(const StatusOr<T>& result) {
  return result.status();
}

}  // namespace

template <typename Call>
auto StoreDecorator::Through(Access access, const Call& call) -> decltype(call()) {
  decltype(call()) result = Internal("the call was not made");
  const Status status = Around(access, [&] {
    result = call();
    return StatusOf(result);
  });
  if (!status.ok()) return status;
  return result;
}

Status StoreDecorator::AddJob(const JobRow& job, std::span<const TaskRow> tasks) {
  return Through(Access::kWrite, [&] { return store_.AddJob(job, tasks); });
}

Status StoreDecorator::UpdateJobState(std::string_view job_id, JobState state,
                                      std::string_view message, int64_t now_ms) {
  return Through(Access::kWrite,
                 [&] { return store_.UpdateJobState(job_id, state, message, now_ms); });
}

Status StoreDecorator::ReopenJob(std::string_view job_id) {
  return Through(Access::kWrite, [&] { return store_.ReopenJob(job_id); });
}

StatusOr<JobRow> StoreDecorator::GetJob(std::string_view job_id) {
  return Through(Access::kRead, [&] { return store_.GetJob(job_id); });
}

StatusOr<std::vector<JobRow>> StoreDecorator::ListJobs(std::optional<uint32_t> limit) {
  return Through(Access::kRead, [&] { return store_.ListJobs(limit); });
}

StatusOr<std::vector<JobRow>> StoreDecorator::LoadUnfinishedJobs() {
  return Through(Access::kRead, [&] { return store_.LoadUnfinishedJobs(); });
}

Status StoreDecorator::AddTasks(std::string_view job_id, std::span<const TaskRow> tasks) {
  return Through(Access::kWrite, [&] { return store_.AddTasks(job_id, tasks); });
}

StatusOr<std::vector<TaskRow>> StoreDecorator::TasksOfJob(std::string_view job_id) {
  return Through(Access::kRead, [&] { return store_.TasksOfJob(job_id); });
}

Status StoreDecorator::SetReferenceCost(std::string_view job_id, uint32_t task_index,
                                        double cost_s) {
  return Through(Access::kWrite,
                 [&] { return store_.SetReferenceCost(job_id, task_index, cost_s); });
}

Status StoreDecorator::SetKnownTask(std::string_view job_id, uint32_t task_index,
                                    std::string_view known_job, uint32_t trials) {
  return Through(Access::kWrite,
                 [&] { return store_.SetKnownTask(job_id, task_index, known_job, trials); });
}

StatusOr<std::vector<int64_t>> StoreDecorator::AddRecords(std::span<const Record> records,
                                                          std::span<const ReferenceCost> costs) {
  return Through(Access::kWrite, [&] { return store_.AddRecords(records, costs); });
}

StatusOr<int64_t> StoreDecorator::ImportRecords(std::string_view job_id,
                                                std::span<const Record> records) {
  return Through(Access::kWrite, [&] { return store_.ImportRecords(job_id, records); });
}

StatusOr<Record> StoreDecorator::GetRecord(int64_t id) {
  return Through(Access::kRead, [&] { return store_.GetRecord(id); });
}

StatusOr<std::vector<Record>> StoreDecorator::RecordsOfJob(std::string_view job_id,
                                                           uint32_t from_trial) {
  return Through(Access::kRead, [&] { return store_.RecordsOfJob(job_id, from_trial); });
}

StatusOr<std::vector<Record>> StoreDecorator::LatestRecords(std::string_view target,
                                                            uint32_t limit) {
  return Through(Access::kRead, [&] { return store_.LatestRecords(target, limit); });
}

StatusOr<std::optional<Record>> StoreDecorator::BestOfJob(std::string_view job_id,
                                                          uint32_t task_index) {
  return Through(Access::kRead, [&] { return store_.BestOfJob(job_id, task_index); });
}

StatusOr<TrialCounts> StoreDecorator::CountTrials(std::string_view job_id) {
  return Through(Access::kRead, [&] { return store_.CountTrials(job_id); });
}

Status StoreDecorator::SetRemeasurements(std::span<const Remeasurement> remeasured) {
  return Through(Access::kWrite, [&] { return store_.SetRemeasurements(remeasured); });
}

StatusOr<int64_t> StoreDecorator::MarkRecords(const SlowSpan& span) {
  return Through(Access::kWrite, [&] { return store_.MarkRecords(span); });
}

StatusOr<uint32_t> StoreDecorator::AddRound(const RoundRow& row) {
  return Through(Access::kWrite, [&] { return store_.AddRound(row); });
}

StatusOr<std::vector<RoundRow>> StoreDecorator::RoundsOfJob(std::string_view job_id,
                                                            uint32_t from) {
  return Through(Access::kRead, [&] { return store_.RoundsOfJob(job_id, from); });
}

Status StoreDecorator::SetCalibration(const CalibrationRow& row) {
  return Through(Access::kWrite, [&] { return store_.SetCalibration(row); });
}

StatusOr<std::vector<CalibrationRow>> StoreDecorator::Calibrations() {
  return Through(Access::kRead, [&] { return store_.Calibrations(); });
}

Status StoreDecorator::AddModel(const ModelRow& row, bool replace) {
  return Through(Access::kWrite, [&] { return store_.AddModel(row, replace); });
}

StatusOr<ModelRow> StoreDecorator::GetModel(std::string_view name) {
  return Through(Access::kRead, [&] { return store_.GetModel(name); });
}

StatusOr<std::vector<ModelRow>> StoreDecorator::Models() {
  return Through(Access::kRead, [&] { return store_.Models(); });
}

Status StoreDecorator::DeleteModel(std::string_view name) {
  return Through(Access::kWrite, [&] { return store_.DeleteModel(name); });
}

Status StoreDecorator::PinSchedule(const PinnedSchedule& pinned) {
  return Through(Access::kWrite, [&] { return store_.PinSchedule(pinned); });
}

StatusOr<std::vector<PinnedSchedule>> StoreDecorator::PinnedSchedules(
    std::string_view workload_id) {
  return Through(Access::kRead, [&] { return store_.PinnedSchedules(workload_id); });
}

StatusOr<bool> StoreDecorator::UnpinSchedule(std::string_view workload_id,
                                             std::string_view target) {
  return Through(Access::kWrite, [&] { return store_.UnpinSchedule(workload_id, target); });
}

Status StoreDecorator::SetUserLimits(std::string_view name, const UserLimits& limits) {
  return Through(Access::kWrite, [&] { return store_.SetUserLimits(name, limits); });
}

Status StoreDecorator::SetUserUses(std::span<const UserUse> uses) {
  return Through(Access::kWrite, [&] { return store_.SetUserUses(uses); });
}

StatusOr<std::vector<UserRow>> StoreDecorator::Users() {
  return Through(Access::kRead, [&] { return store_.Users(); });
}

StatusOr<UserTotals> StoreDecorator::TotalsOfUser(std::string_view name, int64_t since_s,
                                                  bool with_bytes) {
  return Through(Access::kRead, [&] { return store_.TotalsOfUser(name, since_s, with_bytes); });
}

Status StoreDecorator::AddAudit(const AuditRow& entry, int64_t keep) {
  return Through(Access::kWrite, [&] { return store_.AddAudit(entry, keep); });
}

StatusOr<int64_t> StoreDecorator::PruneAudit(int64_t before_ms) {
  return Through(Access::kWrite, [&] { return store_.PruneAudit(before_ms); });
}

StatusOr<std::vector<AuditRow>> StoreDecorator::Audit(std::string_view user, int64_t since_ms,
                                                      uint32_t limit) {
  return Through(Access::kRead, [&] { return store_.Audit(user, since_ms, limit); });
}

StatusOr<SchedulerIdentity> StoreDecorator::NextIncarnation() {
  return Through(Access::kWrite, [&] { return store_.NextIncarnation(); });
}

Status StoreDecorator::SetProgress(std::string_view job_id, const JobProgress& progress) {
  return Through(Access::kWrite, [&] { return store_.SetProgress(job_id, progress); });
}

StatusOr<std::optional<Record>> StoreDecorator::UnscheduledOfJob(std::string_view job_id,
                                                                 uint32_t task_index) {
  return Through(Access::kRead, [&] { return store_.UnscheduledOfJob(job_id, task_index); });
}

StatusOr<int64_t> StoreDecorator::DeleteRecords(std::span<const int64_t> ids) {
  return Through(Access::kWrite, [&] { return store_.DeleteRecords(ids); });
}

StatusOr<int64_t> StoreDecorator::ImportAutotvmRecords(std::span<const AutotvmRecord> records) {
  return Through(Access::kWrite, [&] { return store_.ImportAutotvmRecords(records); });
}

StatusOr<int64_t> StoreDecorator::DeleteAutotvmRecords(std::span<const int64_t> ids) {
  return Through(Access::kWrite, [&] { return store_.DeleteAutotvmRecords(ids); });
}

Status StoreDecorator::AddComputations(std::span<const Computation> computations) {
  return Through(Access::kWrite, [&] { return store_.AddComputations(computations); });
}

StatusOr<std::vector<Computation>> StoreDecorator::ComputationsOfKey(std::string_view key) {
  return Through(Access::kRead, [&] { return store_.ComputationsOfKey(key); });
}

Status StoreDecorator::BindKey(const Computation& computation) {
  return Through(Access::kWrite, [&] { return store_.BindKey(computation); });
}

StatusOr<std::optional<Computation>> StoreDecorator::BoundTo(std::string_view key) {
  return Through(Access::kRead, [&] { return store_.BoundTo(key); });
}

StatusOr<int64_t> StoreDecorator::BindRecords(const Computation& computation,
                                              std::span<const int64_t> ids) {
  return Through(Access::kWrite, [&] { return store_.BindRecords(computation, ids); });
}

Status StoreDecorator::Read(const std::function<Status(Snapshot&)>& read) {
  return Through(Access::kRead, [&] { return store_.Read(read); });
}

}  // namespace kiln::store
