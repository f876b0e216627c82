// Wraps another store and has a say in every call: to wait and call again, or, in tests, to fail.
//
// Every method of the interface goes through Around(), so that none can be forgotten. Thread-safe
// if Around() is.
#pragma once

#include <functional>
#include <utility>

#include "store/store.h"

namespace kiln::store {

class StoreDecorator : public Store {
 public:
  // `store` outlives this.
  explicit StoreDecorator(Store& store) : store_(store) {}

  using Store::AddJob;
  using Store::AddModel;
  using Store::AddRecords;

  Status AddJob(const JobRow& job, std::span<const TaskRow> tasks) override;
  Status UpdateJobState(std::string_view job_id, JobState state, std::string_view message,
                        int64_t now_ms) override;
  Status ReopenJob(std::string_view job_id) override;
  Status SetProgress(std::string_view job_id, const JobProgress& progress) override;
  StatusOr<JobRow> GetJob(std::string_view job_id) override;
  StatusOr<std::vector<JobRow>> ListJobs(std::optional<uint32_t> limit) override;
  StatusOr<std::vector<JobRow>> LoadUnfinishedJobs() override;
  Status AddTasks(std::string_view job_id, std::span<const TaskRow> tasks) override;
  StatusOr<std::vector<TaskRow>> TasksOfJob(std::string_view job_id) override;
  Status SetReferenceCost(std::string_view job_id, uint32_t task_index, double cost_s) override;
  Status SetKnownTask(std::string_view job_id, uint32_t task_index, std::string_view known_job,
                      uint32_t trials) override;
  StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records,
                                            std::span<const ReferenceCost> costs) override;
  StatusOr<int64_t> ImportRecords(std::string_view job_id,
                                  std::span<const Record> records) override;
  StatusOr<Record> GetRecord(int64_t id) override;
  StatusOr<std::vector<Record>> RecordsOfJob(std::string_view job_id, uint32_t from_trial) override;
  StatusOr<std::vector<Record>> LatestRecords(std::string_view target, uint32_t limit) override;
  StatusOr<std::optional<Record>> BestOfJob(std::string_view job_id, uint32_t task_index) override;
  StatusOr<std::optional<Record>> UnscheduledOfJob(std::string_view job_id,
                                                   uint32_t task_index) override;
  StatusOr<TrialCounts> CountTrials(std::string_view job_id) override;
  Status SetRemeasurements(std::span<const Remeasurement> remeasured) override;
  StatusOr<int64_t> MarkRecords(const SlowSpan& span) override;
  StatusOr<int64_t> DeleteRecords(std::span<const int64_t> ids) override;
  StatusOr<int64_t> ImportAutotvmRecords(std::span<const AutotvmRecord> records) override;
  StatusOr<int64_t> DeleteAutotvmRecords(std::span<const int64_t> ids) override;
  Status AddComputations(std::span<const Computation> computations) override;
  StatusOr<std::vector<Computation>> ComputationsOfKey(std::string_view key) override;
  Status BindKey(const Computation& computation) override;
  StatusOr<std::optional<Computation>> BoundTo(std::string_view key) override;
  StatusOr<int64_t> BindRecords(const Computation& computation,
                                std::span<const int64_t> ids) override;
  StatusOr<uint32_t> AddRound(const RoundRow& row) override;
  StatusOr<std::vector<RoundRow>> RoundsOfJob(std::string_view job_id, uint32_t from) override;
  Status SetCalibration(const CalibrationRow& row) override;
  StatusOr<std::vector<CalibrationRow>> Calibrations() override;
  Status AddModel(const ModelRow& row, bool replace) override;
  StatusOr<ModelRow> GetModel(std::string_view name) override;
  StatusOr<std::vector<ModelRow>> Models() override;
  Status DeleteModel(std::string_view name) override;
  Status PinSchedule(const PinnedSchedule& pinned) override;
  StatusOr<std::vector<PinnedSchedule>> PinnedSchedules(std::string_view workload_id) override;
  StatusOr<bool> UnpinSchedule(std::string_view workload_id, std::string_view target) override;
  Status SetUserLimits(std::string_view name, const UserLimits& limits) override;
  Status SetUserUses(std::span<const UserUse> uses) override;
  StatusOr<std::vector<UserRow>> Users() override;
  StatusOr<UserTotals> TotalsOfUser(std::string_view name, int64_t since_s,
                                    bool with_bytes) override;
  Status AddAudit(const AuditRow& entry, int64_t keep) override;
  StatusOr<int64_t> PruneAudit(int64_t before_ms) override;
  StatusOr<std::vector<AuditRow>> Audit(std::string_view user, int64_t since_ms,
                                        uint32_t limit) override;
  StatusOr<SchedulerIdentity> NextIncarnation() override;
  Status Read(const std::function<Status(Snapshot&)>& read) override;

 protected:
  enum class Access { kRead, kWrite };

  // Invokes `call`, which calls the wrapped store anew each time. The caller gets the result of the
  // last `call`, unless Around() returns an error.
  virtual Status Around(Access access, const std::function<Status()>& call) = 0;

 private:
  template <typename Call>
  auto Through(Access access, const Call& call) -> decltype(call());

  Store& store_;
};

}  // namespace kiln::store
