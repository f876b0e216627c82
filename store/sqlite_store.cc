#include "store/sqlite_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/hash/unique_id.h"
#include "store/best_of_jobs.h"
#include "store/connection_pool.h"
#include "store/group_commit.h"
#include "store/schema.h"
#include "store/sqlite_rows.h"
#include "store/sqlite_snapshot.h"
#include "store/sqlite_writes.h"
#include "store/trial_tallies.h"
#include "store/trial_times.h"

namespace kiln::store {
namespace {

using sqlite::Blob;
using sqlite::ConnectionPool;
using sqlite::Database;
using sqlite::ReadTransaction;
using sqlite::Statement;
using sqlite::Transaction;

// Most threads that read at a time; others wait. Each connection has a page cache of its own.
constexpr size_t kMaxReaders = 8;

// Page cache of the writer. A batch of an import changes some thousands of pages: if they do not
// fit, they are written several times. Memory is taken as pages are used.
constexpr int kWriterCacheKiB = 48 << 10;

// The bytes that the records of jobs take, kept as records come, so that the totals of a user need
// not read the texts of all records again. The writer tells it of each change, after the commit.
// Thread-safe. Memory: one entry for each job that was asked for; at most kMostJobs.
class BytesOfJobs {
 public:
  // None: the job is not known, and the database has to be asked.
  std::optional<uint64_t> Find(std::string_view job_id) const {
    std::lock_guard lock(mutex_);
    const auto job = jobs_.find(job_id);
    return job == jobs_.end() ? std::nullopt : std::optional(job->second);
  }
  // Sets what the database has of the job. Forgets all others if there are too many.
  void Begin(std::string_view job_id, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    if (jobs_.size() >= kMostJobs && !jobs_.contains(job_id)) jobs_.clear();
    jobs_.insert_or_assign(std::string(job_id), bytes);
  }
  // Changes the bytes of a job, if it is known, from those of `before` to those of `after`.
  void Change(std::string_view job_id, uint64_t before, uint64_t after) {
    std::lock_guard lock(mutex_);
    const auto job = jobs_.find(job_id);
    if (job != jobs_.end()) job->second += after - before;
  }
  void ForgetAll() {
    std::lock_guard lock(mutex_);
    jobs_.clear();
  }

 private:
  static constexpr size_t kMostJobs = 50'000;

  mutable std::mutex mutex_;
  std::map<std::string, uint64_t, std::less<>> jobs_;
};

StatusOr<std::set<std::string, std::less<>>> RunnersOf(Database& database,
                                                       std::string_view job_id) {
  KILN_ASSIGN_OR_RETURN(Statement query, database.Prepare("SELECT DISTINCT runner FROM records "
                                                          "WHERE job_id = ? AND runner != ''"));
  KILN_RETURN_IF_ERROR(query.Bind(job_id));
  std::set<std::string, std::less<>> runners;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return runners;
    runners.emplace(query.Text(0));
  }
}

StatusOr<TrialTallies::Tally> TallyOf(Database& database, std::string_view job_id) {
  KILN_ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare(
          "SELECT task_index, error, count(*), max(trial), sum(run_s), sum(remeasured_run_s) "
          "FROM records WHERE job_id = ? GROUP BY task_index, error"));
  KILN_RETURN_IF_ERROR(query.Bind(job_id));
  TrialTallies::Tally tally;
  KILN_ASSIGN_OR_RETURN(tally.runners, RunnersOf(database, job_id));
  TrialCounts& counts = tally.counts;
  counts.runners = static_cast<int64_t>(tally.runners.size());
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return tally;
    const int64_t trials = query.Int(2);
    counts.total += trials;
    counts.by_task[static_cast<uint32_t>(query.Int(0))] += trials;
    KILN_ASSIGN_OR_RETURN(const int error, ErrorKindOf(query.Int(1), job_id));
    counts.by_error[static_cast<size_t>(error)] += trials;
    const double run_s = query.Double(4);
    // The time of an import is not known.
    if (run_s > 0) counts.run_s += run_s;
    counts.remeasured_run_s += query.Double(5);
    counts.next_trial = std::max(counts.next_trial, static_cast<uint32_t>(query.Int(3)) + 1);
  }
}

// Counts imported trials without reading their records. The devices' time is not known for them.
StatusOr<TrialCounts> CountImported(Database& database) {
  TrialCounts counts;
  KILN_ASSIGN_OR_RETURN(Statement query,
                        database.Prepare("SELECT error, trials FROM import_counts"));
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) break;
    KILN_ASSIGN_OR_RETURN(const int error, ErrorKindOf(query.Int(0), kImport));
    counts.by_error[static_cast<size_t>(error)] = query.Int(1);
    counts.total += query.Int(1);
  }
  if (counts.total == 0) return counts;
  counts.by_task[0] = counts.total;
  KILN_ASSIGN_OR_RETURN(Statement last,
                        database.Prepare("SELECT max(trial) FROM records WHERE job_id = ?"));
  KILN_RETURN_IF_ERROR(last.Bind(kImport));
  KILN_RETURN_IF_ERROR(last.Step().status());
  counts.next_trial = static_cast<uint32_t>(last.Int(0)) + 1;
  return counts;
}

class SqliteStore final : public Store {
 public:
  using Store::AddJob;
  using Store::AddModel;
  using Store::AddRecords;

  SqliteStore(std::unique_ptr<Database> writer, const sqlite::OpenOptions& options)
      : database_(std::move(writer)),
        writes_(*database_),
        commits_(mutex_, *database_),
        readers_(database_->path(), kApplicationId, options, kMaxReaders) {}

  Status AddJob(const JobRow& job, std::span<const TaskRow> tasks) override {
    std::lock_guard lock(mutex_);
    if (job.id.empty()) return InvalidArgument("a job needs an id, found none");
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare(
            "INSERT INTO jobs (id, name, user, priority, state, message, spec, created_ms, "
            "started_ms, finished_ms, trials, paused) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    KILN_RETURN_IF_ERROR(
        insert.Bind(job.id, job.name, job.user, job.priority, StoredState(job.state), job.message,
                    Blob{job.spec}, job.created_ms, StoredTime(job.started_ms),
                    StoredTime(job.finished_ms), job.trials, job.state == JobState::kPaused));
    if (Status status = insert.Run(); !status.ok()) {
      if (status.code() != StatusCode::kAlreadyExists) return status;
      return AlreadyExists("job {} exists already", job.id);
    }
    KILN_RETURN_IF_ERROR(writes_.InsertTasks(job.id, tasks));
    return transaction.Commit();
  }

  Status UpdateJobState(std::string_view job_id, JobState state, std::string_view message,
                        int64_t now_ms) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(JobRow job, FindJob(*database_, job_id));
    KILN_ASSIGN_OR_RETURN(const bool changed, ApplyJobState(job, state, message, now_ms));
    if (!changed) return OkStatus();
    KILN_RETURN_IF_ERROR(writes_.UpdateJob(job));
    KILN_RETURN_IF_ERROR(transaction.Commit());
    // Another process may delete records of a job that has ended.
    if (IsFinal(job.state)) bests_.Forget(job_id);
    return OkStatus();
  }

  Status ReopenJob(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(JobRow job, FindJob(*database_, job_id));
    KILN_RETURN_IF_ERROR(ApplyReopen(job));
    KILN_RETURN_IF_ERROR(writes_.UpdateJob(job));
    return transaction.Commit();
  }

  Status SetProgress(std::string_view job_id, const JobProgress& progress) override {
    return commits_.Commit({.write = [&] { return writes_.UpdateProgress(job_id, progress); }});
  }

  StatusOr<JobRow> GetJob(std::string_view job_id) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return FindJob(*reader, job_id);
  }

  StatusOr<std::vector<JobRow>> ListJobs(std::optional<uint32_t> limit) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    // SQLite reads -1 as "all rows".
    const int64_t rows = limit.has_value() ? int64_t{*limit} : -1;
    return Select<JobRow>(*reader, ReadJob, kJobColumns, "ORDER BY number DESC LIMIT ?", rows);
  }

  StatusOr<std::vector<JobRow>> LoadUnfinishedJobs() override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<JobRow>(*reader, ReadJob, kJobColumns,
                          "WHERE state IN ('queued', 'running') ORDER BY number");
  }

  Status AddTasks(std::string_view job_id, std::span<const TaskRow> tasks) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_RETURN_IF_ERROR(FindJob(*database_, job_id).status());
    KILN_RETURN_IF_ERROR(writes_.InsertTasks(job_id, tasks));
    return transaction.Commit();
  }

  StatusOr<std::vector<TaskRow>> TasksOfJob(std::string_view job_id) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<TaskRow>(*reader, ReadTask, kTaskColumns, "WHERE job_id = ? ORDER BY task_index",
                           job_id);
  }

  Status SetReferenceCost(std::string_view job_id, uint32_t task_index, double cost_s) override {
    std::lock_guard lock(mutex_);
    return writes_.UpdateReferenceCost({std::string(job_id), task_index, cost_s});
  }

  Status SetKnownTask(std::string_view job_id, uint32_t task_index, std::string_view known_job,
                      uint32_t trials) override {
    std::lock_guard lock(mutex_);
    return writes_.UpdateKnownTask(job_id, task_index, known_job, trials);
  }

  StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records,
                                            std::span<const ReferenceCost> costs) override {
    KILN_RETURN_IF_ERROR(CheckBatch(records));
    RecordBatch batch{.records = records, .costs = costs};
    KILN_RETURN_IF_ERROR(commits_.Commit({.prepare = [&] { return Prepare(batch); },
                                          .write = [&] { return WriteBatch(batch); },
                                          .committed = [&] { KeepSums(batch); }}));
    return std::move(batch.ids);
  }

  StatusOr<int64_t> ImportRecords(std::string_view job_id,
                                  std::span<const Record> records) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(uint32_t next_trial, writes_.NextTrial(job_id));
    SqliteSnapshot view(*database_);
    Measurements measurements(view);
    int64_t imported = 0;
    SqliteWrites::ErrorCounts by_error{};
    for (const Record& record : records) {
      KILN_ASSIGN_OR_RETURN(const bool known, measurements.Has(record));
      if (known) continue;
      const uint32_t trial = next_trial++;
      KILN_RETURN_IF_ERROR(ValidateRecord(record, job_id, trial));
      KILN_RETURN_IF_ERROR(writes_.InsertRecord(record, job_id, trial).status());
      ++by_error[static_cast<size_t>(record.error)];
      ++imported;
    }
    if (job_id == kImport) KILN_RETURN_IF_ERROR(writes_.CountImported(by_error));
    tallies_.Forget(job_id);
    bests_.ForgetAll();
    bytes_.ForgetAll();
    times_.ForgetAll();
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return imported;
  }

  StatusOr<Record> GetRecord(int64_t id) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    KILN_ASSIGN_OR_RETURN(std::optional<Record> record, SelectOne(*reader, "WHERE r.id = ?", id));
    if (!record) return NotFound("no record {}", id);
    return *std::move(record);
  }

  StatusOr<std::vector<Record>> RecordsOfJob(std::string_view job_id,
                                             uint32_t from_trial) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return SelectRecords(*reader, "WHERE job_id = ? AND trial >= ? ORDER BY trial", job_id,
                         from_trial);
  }

  StatusOr<std::vector<Record>> LatestRecords(std::string_view target, uint32_t limit) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    KILN_ASSIGN_OR_RETURN(
        std::vector<Record> records,
        SelectRecords(*reader, "WHERE target = ? ORDER BY r.id DESC LIMIT ?", target, limit));
    std::reverse(records.begin(), records.end());
    return records;
  }

  StatusOr<std::optional<Record>> BestOfJob(std::string_view job_id, uint32_t task_index) override {
    return Ask({BestOfJobs::Kind::kBest, std::string(job_id), task_index},
               [&] { return ReadBest(job_id, task_index); });
  }
  StatusOr<std::optional<Record>> UnscheduledOfJob(std::string_view job_id,
                                                   uint32_t task_index) override {
    return Ask({BestOfJobs::Kind::kUnscheduled, std::string(job_id), task_index},
               [&] { return ReadUnscheduled(job_id, task_index); });
  }

  StatusOr<TrialCounts> CountTrials(std::string_view job_id) override {
    if (auto counts = tallies_.Find(job_id)) return *std::move(counts);
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    if (job_id == kImport) return CountImported(*reader);
    // Sums are kept from now on, unless a write is under way: a read waits for none.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    KILN_ASSIGN_OR_RETURN(TrialTallies::Tally tally, TallyOf(*reader, job_id));
    TrialCounts counts = tally.counts;
    if (lock.owns_lock() && counts.total > 0) tallies_.Begin(job_id, std::move(tally));
    return counts;
  }

  Status SetRemeasurements(std::span<const Remeasurement> remeasured) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    std::vector<std::pair<Record, Record>> changed;
    for (const Remeasurement& f : remeasured) {
      KILN_ASSIGN_OR_RETURN(std::optional<Record> found,
                            SelectOne(*database_, "WHERE r.id = ?", f.id));
      if (!found) return NotFound("no record {}", f.id);
      KILN_ASSIGN_OR_RETURN(Record record, WithRemeasurement(*found, f));
      KILN_RETURN_IF_ERROR(writes_.UpdateRemeasurements(record));
      changed.emplace_back(*std::move(found), std::move(record));
    }
    KILN_RETURN_IF_ERROR(transaction.Commit());
    for (const auto& [before, after] : changed) {
      tallies_.Change(before, after);
      bests_.Change(before.job_id, before.task_index);
      bytes_.Change(before.job_id, StoredBytes(before), StoredBytes(after));
    }
    return OkStatus();
  }

  StatusOr<int64_t> MarkRecords(const SlowSpan& span) override {
    std::lock_guard lock(mutex_);
    const StatusOr<int64_t> marked = writes_.MarkRecords(span);
    if (marked.value_or(1) > 0) {
      bests_.ForgetAll();
      bytes_.ForgetAll();
    }
    return marked;
  }

  StatusOr<uint32_t> AddRound(const RoundRow& row) override {
    uint32_t number = 0;
    KILN_RETURN_IF_ERROR(commits_.Commit({.write = [&]() -> Status {
      KILN_ASSIGN_OR_RETURN(number, InsertRound(row));
      return OkStatus();
    }}));
    return number;
  }

  StatusOr<std::vector<RoundRow>> RoundsOfJob(std::string_view job_id, uint32_t from) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<RoundRow>(*reader, ReadRound, kRoundColumns,
                            "WHERE job_id = ? AND number >= ? ORDER BY number", job_id, from);
  }

  Status SetCalibration(const CalibrationRow& row) override {
    KILN_RETURN_IF_ERROR(CheckCalibration(row));
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare("INSERT OR REPLACE INTO calibrations (device, compute_capability, "
                           "constants, fitted_s, report) VALUES (?, ?, ?, ?, ?)"));
    KILN_RETURN_IF_ERROR(
        insert.Bind(row.device, row.compute_capability, row.constants, row.fitted_s, row.report));
    return insert.Run();
  }

  StatusOr<std::vector<CalibrationRow>> Calibrations() override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<CalibrationRow>(*reader, ReadCalibration, kCalibrationColumns,
                                  "ORDER BY device, compute_capability");
  }

  Status AddModel(const ModelRow& row, bool replace) override {
    KILN_RETURN_IF_ERROR(CheckModel(row));
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(Statement query,
                          database_->Prepare("SELECT file = ? FROM models WHERE name = ?"));
    KILN_RETURN_IF_ERROR(query.Bind(Blob{row.file}, row.name));
    KILN_ASSIGN_OR_RETURN(const bool is_there, query.Step());
    if (is_there && query.Int(0) == 1) return OkStatus();
    if (is_there && !replace) return AlreadyExists("there is another cost model '{}'", row.name);
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare("INSERT OR REPLACE INTO models (name, created_s, info, "
                           "file) VALUES (?, ?, ?, ?)"));
    KILN_RETURN_IF_ERROR(insert.Bind(row.name, row.created_s, row.info, Blob{row.file}));
    KILN_RETURN_IF_ERROR(insert.Run());
    return transaction.Commit();
  }

  StatusOr<ModelRow> GetModel(std::string_view name) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    KILN_ASSIGN_OR_RETURN(
        Statement query,
        reader->Prepare("SELECT name, created_s, length(file), info, file FROM models "
                        "WHERE name = ?"));
    KILN_RETURN_IF_ERROR(query.Bind(name));
    KILN_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return NotFound("no cost model '{}'", name);
    KILN_ASSIGN_OR_RETURN(ModelRow row, ReadModel(query));
    row.file = query.Text(4);
    return row;
  }

  StatusOr<std::vector<ModelRow>> Models() override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<ModelRow>(*reader, ReadModel, kModelColumns, "ORDER BY name");
  }

  Status DeleteModel(std::string_view name) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Statement remove,
                          database_->Prepare("DELETE FROM models WHERE name = ?"));
    KILN_RETURN_IF_ERROR(remove.Bind(name));
    KILN_RETURN_IF_ERROR(remove.Run());
    return database_->changes() > 0 ? OkStatus() : NotFound("no cost model '{}'", name);
  }

  Status PinSchedule(const PinnedSchedule& pinned) override {
    KILN_RETURN_IF_ERROR(CheckPinnedSchedule(pinned));
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare("INSERT OR REPLACE INTO pinned_schedules (workload_id, target, steps, "
                           "pinned_s) VALUES (?, ?, ?, ?)"));
    KILN_RETURN_IF_ERROR(
        insert.Bind(pinned.workload_id, pinned.target, pinned.steps, pinned.pinned_s));
    return insert.Run();
  }

  StatusOr<std::vector<PinnedSchedule>> PinnedSchedules(std::string_view workload_id) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<PinnedSchedule>(*reader, ReadPinned, kPinnedColumns,
                                  "WHERE ?1 = '' OR workload_id = ?1 ORDER BY workload_id, target",
                                  workload_id);
  }

  StatusOr<bool> UnpinSchedule(std::string_view workload_id, std::string_view target) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(
        Statement remove,
        database_->Prepare("DELETE FROM pinned_schedules WHERE workload_id = ? AND target = ?"));
    KILN_RETURN_IF_ERROR(remove.Bind(workload_id, target));
    KILN_RETURN_IF_ERROR(remove.Run());
    return database_->changes() > 0;
  }

  Status SetUserLimits(std::string_view name, const UserLimits& limits) override {
    KILN_RETURN_IF_ERROR(CheckLimits(limits));
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare(
            "INSERT INTO users (name, weight, trials_per_day, devices, jobs, stored_bytes) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name) DO UPDATE SET weight = ?2, "
            "trials_per_day = ?3, devices = ?4, jobs = ?5, stored_bytes = ?6"));
    KILN_RETURN_IF_ERROR(insert.Bind(name, limits.weight,
                                     static_cast<int64_t>(limits.trials_per_day), limits.devices,
                                     limits.jobs, static_cast<int64_t>(limits.stored_bytes)));
    return insert.Run();
  }

  Status SetUserUses(std::span<const UserUse> uses) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    for (const UserUse& use : uses) {
      KILN_ASSIGN_OR_RETURN(
          Statement insert,
          database_->Prepare("INSERT INTO users (name, device_s, used_at_ms, queue_use) "
                             "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET "
                             "device_s = ?2, used_at_ms = ?3, queue_use = ?4"));
      KILN_RETURN_IF_ERROR(insert.Bind(use.name, use.device_s, use.at_ms, use.queue_use));
      KILN_RETURN_IF_ERROR(insert.Run());
    }
    return transaction.Commit();
  }

  StatusOr<std::vector<UserRow>> Users() override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<UserRow>(*reader, ReadUser, kUserColumns, "ORDER BY name");
  }

  StatusOr<UserTotals> TotalsOfUser(std::string_view name, int64_t since_s,
                                    bool with_bytes) override {
    KILN_ASSIGN_OR_RETURN(const std::vector<JobOfUser> jobs, JobsOfUser(name, since_s));
    UserTotals totals;
    for (const JobOfUser& job : jobs) {
      if (job.unfinished) {
        KILN_ASSIGN_OR_RETURN(const TrialCounts counts, CountTrials(job.id));
        ++totals.unfinished_jobs;
        totals.trials_to_come +=
            static_cast<uint64_t>(std::max<int64_t>(0, job.trials - counts.total));
      }
      if (job.recent) {
        KILN_ASSIGN_OR_RETURN(const uint64_t trials, TrialsSince(job.id, since_s));
        totals.trials_since += trials;
      }
      if (!with_bytes) continue;
      KILN_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOfJob(job.id));
      totals.stored_bytes += bytes;
    }
    return totals;
  }

  Status AddAudit(const AuditRow& entry, int64_t keep) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(Statement insert,
                          database_->Prepare("INSERT INTO audit (at_ms, user, call, subject, "
                                             "refused) VALUES (?, ?, ?, ?, ?)"));
    KILN_RETURN_IF_ERROR(
        insert.Bind(entry.at_ms, entry.user, entry.call, entry.subject, entry.refused));
    KILN_RETURN_IF_ERROR(insert.Run());
    KILN_ASSIGN_OR_RETURN(Statement drop, database_->Prepare("DELETE FROM audit WHERE id <= ?"));
    KILN_RETURN_IF_ERROR(drop.Bind(database_->last_insert_id() - keep));
    KILN_RETURN_IF_ERROR(drop.Run());
    return transaction.Commit();
  }

  StatusOr<int64_t> PruneAudit(int64_t before_ms) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Statement drop, database_->Prepare("DELETE FROM audit WHERE at_ms < ?"));
    KILN_RETURN_IF_ERROR(drop.Bind(before_ms));
    KILN_RETURN_IF_ERROR(drop.Run());
    return database_->changes();
  }

  StatusOr<std::vector<AuditRow>> Audit(std::string_view user, int64_t since_ms,
                                        uint32_t limit) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    if (user.empty()) {
      return Select<AuditRow>(*reader, ReadAudit, kAuditColumns,
                              "WHERE at_ms >= ? ORDER BY id DESC LIMIT ?", since_ms, limit);
    }
    return Select<AuditRow>(*reader, ReadAudit, kAuditColumns,
                            "WHERE user = ? AND at_ms >= ? ORDER BY id DESC LIMIT ?", user,
                            since_ms, limit);
  }

  StatusOr<SchedulerIdentity> NextIncarnation() override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(Statement insert,
                          database_->Prepare("INSERT INTO scheduler (id, incarnation) SELECT ?, 0 "
                                             "WHERE NOT EXISTS (SELECT 1 FROM scheduler)"));
    KILN_RETURN_IF_ERROR(insert.Bind(UniqueId()));
    KILN_RETURN_IF_ERROR(insert.Run());
    KILN_ASSIGN_OR_RETURN(Statement update,
                          database_->Prepare("UPDATE scheduler SET incarnation = incarnation + 1"));
    KILN_RETURN_IF_ERROR(update.Run());
    KILN_ASSIGN_OR_RETURN(Statement query,
                          database_->Prepare("SELECT id, incarnation FROM scheduler"));
    KILN_RETURN_IF_ERROR(query.Step().status());
    SchedulerIdentity identity{std::string(query.Text(0)), query.Int(1)};
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return identity;
  }

  StatusOr<int64_t> DeleteRecords(std::span<const int64_t> ids) override {
    return DeleteEach(ids, &SqliteWrites::DeleteRecord);
  }

  StatusOr<int64_t> ImportAutotvmRecords(std::span<const AutotvmRecord> records) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    int64_t imported = 0;
    for (const AutotvmRecord& record : records) {
      KILN_RETURN_IF_ERROR(ValidateAutotvmRecord(record));
      KILN_ASSIGN_OR_RETURN(const bool is_new, writes_.InsertAutotvmRecord(record));
      imported += is_new;
    }
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return imported;
  }

  StatusOr<int64_t> DeleteAutotvmRecords(std::span<const int64_t> ids) override {
    return DeleteEach(ids, &SqliteWrites::DeleteAutotvmRecord);
  }

  Status AddComputations(std::span<const Computation> computations) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    for (const Computation& computation : computations) {
      KILN_RETURN_IF_ERROR(CheckComputation(computation));
      KILN_RETURN_IF_ERROR(writes_.Know(computation));
    }
    return transaction.Commit();
  }

  StatusOr<std::vector<Computation>> ComputationsOfKey(std::string_view key) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<Computation>(*reader, ReadComputation, kComputationColumns,
                               "WHERE workload_key = ? ORDER BY workload_id", key);
  }

  Status BindKey(const Computation& computation) override {
    std::lock_guard lock(mutex_);
    KILN_RETURN_IF_ERROR(CheckComputation(computation));
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_RETURN_IF_ERROR(writes_.Unbind(computation));
    KILN_RETURN_IF_ERROR(writes_.Know(computation));
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare(
            "INSERT OR REPLACE INTO bindings (workload_key, workload_id) VALUES (?, ?)"));
    KILN_RETURN_IF_ERROR(insert.Bind(computation.key, computation.id));
    KILN_RETURN_IF_ERROR(insert.Run());
    return transaction.Commit();
  }

  StatusOr<std::optional<Computation>> BoundTo(std::string_view key) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    KILN_ASSIGN_OR_RETURN(const std::vector<Computation> bound,
                          Select<Computation>(*reader, ReadComputation, kComputationColumns,
                                              "JOIN bindings USING (workload_key, workload_id) "
                                              "WHERE workload_key = ?",
                                              key));
    return bound.empty() ? std::nullopt : std::optional(bound.front());
  }

  StatusOr<int64_t> BindRecords(const Computation& computation,
                                std::span<const int64_t> ids) override {
    std::lock_guard lock(mutex_);
    KILN_RETURN_IF_ERROR(CheckComputation(computation));
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(const auto dag_id, writes_.DagId(computation.dag));
    int64_t bound = 0;
    for (const int64_t id : ids) {
      KILN_ASSIGN_OR_RETURN(
          Statement update,
          database_->Prepare("UPDATE records SET workload_id = ?, dag_id = ?, flop_count = ? "
                             "WHERE id = ? AND workload_key = ? AND workload_id = ''"));
      KILN_RETURN_IF_ERROR(
          update.Bind(computation.id, dag_id, computation.flop_count, id, computation.key));
      KILN_RETURN_IF_ERROR(update.Run());
      bound += database_->changes();
    }
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return bound;
  }

 protected:
  Status Read(const std::function<Status(Snapshot&)>& read) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    KILN_ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(*reader));
    SqliteSnapshot view(*reader);
    return read(view);
  }

 private:
  // Returns the number of the round.
  StatusOr<uint32_t> InsertRound(const RoundRow& row) {
    KILN_RETURN_IF_ERROR(FindJob(*database_, row.job_id).status());
    KILN_ASSIGN_OR_RETURN(Statement next,
                          database_->Prepare("SELECT coalesce(max(number) + 1, 0) FROM rounds "
                                             "WHERE job_id = ?"));
    KILN_RETURN_IF_ERROR(next.Bind(row.job_id));
    KILN_RETURN_IF_ERROR(next.Step().status());
    const int64_t number = next.Int(0);
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare("INSERT INTO rounds (job_id, number, task_index, elapsed_s, trials, "
                           "total_latency_s, best_s, search_s, report) "
                           "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    KILN_RETURN_IF_ERROR(insert.Bind(row.job_id, number, row.task_index, row.elapsed_s, row.trials,
                                     row.total_latency_s, PrintCosts(row.best_s), row.search_s,
                                     row.report));
    KILN_RETURN_IF_ERROR(insert.Run());
    return static_cast<uint32_t>(number);
  }

  // Records that are added, and what their transaction finds.
  struct RecordBatch {
    std::span<const Record> records;
    std::span<const ReferenceCost> costs;
    std::set<std::string, std::less<>> jobs = {};
    // Jobs whose best records are kept from the commit on.
    std::vector<std::string> begun = {};
    std::vector<const Record*> added = {};
    std::vector<int64_t> ids = {};
  };

  // Begins the sums of the batch's jobs, of which the database has no record of the transaction.
  Status Prepare(RecordBatch& batch) {
    batch.jobs.clear();
    batch.begun.clear();
    for (const Record& record : batch.records) {
      if (batch.jobs.contains(record.job_id)) continue;
      KILN_RETURN_IF_ERROR(BeginTally(record.job_id));
      KILN_ASSIGN_OR_RETURN(const bool begins, BeginsBests(record.job_id));
      if (begins) batch.begun.push_back(record.job_id);
      batch.jobs.insert(record.job_id);
    }
    return OkStatus();
  }

  Status WriteBatch(RecordBatch& batch) {
    batch.added.clear();
    batch.ids.clear();
    for (const Record& record : batch.records) {
      KILN_ASSIGN_OR_RETURN(const SqliteWrites::Inserted inserted, writes_.InsertOrFind(record));
      batch.ids.push_back(inserted.id);
      if (inserted.is_new) batch.added.push_back(&record);
    }
    for (const ReferenceCost& cost : batch.costs) {
      KILN_RETURN_IF_ERROR(writes_.UpdateReferenceCost(cost));
    }
    for (const std::string& job : batch.jobs) {
      KILN_RETURN_IF_ERROR(writes_.EndFruitlessRuns(job));
    }
    return OkStatus();
  }

  void KeepSums(const RecordBatch& batch) {
    for (const std::string& job : batch.begun) bests_.Begin(job);
    for (const Record* record : batch.added) {
      tallies_.Add(*record);
      bests_.Add(*record);
      bytes_.Change(record->job_id, 0, StoredBytes(*record));
      times_.Add(record->job_id, record->timestamp_s);
    }
  }

  // Begins to keep the sums of a job that gets records, of which the database has none of this
  // transaction yet. Imported records have counts of their own.
  Status BeginTally(const std::string& job_id) {
    if (job_id == kImport || tallies_.Knows(job_id)) return OkStatus();
    KILN_ASSIGN_OR_RETURN(TrialTallies::Tally tally, TallyOf(*database_, job_id));
    tallies_.Begin(job_id, std::move(tally));
    return OkStatus();
  }

  // Returns what is kept, or what `read` finds, which is kept from then on.
  template <typename Read>
  StatusOr<std::optional<Record>> Ask(const BestOfJobs::Question& question, const Read& read) {
    if (auto kept = bests_.Find(question)) return *std::move(kept);
    const std::optional<uint64_t> version = bests_.BeginRead(question.job_id);
    KILN_ASSIGN_OR_RETURN(std::optional<Record> found, read());
    bests_.Keep(question, version, found);
    return found;
  }

  StatusOr<std::optional<Record>> ReadBest(std::string_view job_id, uint32_t task_index) {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    // SQLite uses the index only if the query states the index's condition. All records of an
    // import are read.
    const std::string_view indexed = job_id == kImport ? "" : "AND job_id != 'import'";
    const std::string of_task =
        fmt::format("WHERE job_id = ? AND task_index = ? AND error = 0 {}", indexed);
    KILN_ASSIGN_OR_RETURN(
        std::optional<Record> fastest,
        SelectOne(*reader, fmt::format("{} ORDER BY {} LIMIT 1", of_task, kBestFirst), job_id,
                  task_index));
    if (!fastest.has_value()) return fastest;
    const std::string way = fastest->measured_as;
    KILN_ASSIGN_OR_RETURN(
        fastest, ChooseBeside(*reader, *std::move(fastest), of_task + " AND measured_as = ?",
                              job_id, task_index, way));
    return fastest;
  }

  StatusOr<std::optional<Record>> ReadUnscheduled(std::string_view job_id, uint32_t task_index) {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    // The text of the steps is a literal: SQLite uses the index only then.
    return SelectOne(*reader,
                     fmt::format("WHERE job_id = ? AND task_index = ? AND steps = '{}' "
                                 "AND error = 0 ORDER BY trial DESC LIMIT 1",
                                 kNoSteps),
                     job_id, task_index);
  }

  // Returns whether the best records of a job that gets records are kept from its commit on. Those
  // of a job that has ended are not.
  StatusOr<bool> BeginsBests(std::string_view job_id) {
    if (job_id == kImport || bests_.Knows(job_id)) return false;
    KILN_ASSIGN_OR_RETURN(
        Statement query,
        database_->Prepare("SELECT state IN ('queued', 'running') FROM jobs WHERE id = ?"));
    KILN_RETURN_IF_ERROR(query.Bind(job_id));
    KILN_ASSIGN_OR_RETURN(const bool found, query.Step());
    return found && query.Int(0) != 0;
  }

  // A job of a user, as the totals of the user count it.
  struct JobOfUser {
    std::string id;
    // Number of trials that the job may take.
    int64_t trials = 0;
    bool unfinished = false;
    // The job may have trials of the time that is asked for.
    bool recent = false;
  };

  StatusOr<std::vector<JobOfUser>> JobsOfUser(std::string_view user, int64_t since_s) {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    const auto read = [](const Statement& row) -> StatusOr<JobOfUser> {
      return JobOfUser{row.Text(0), row.Int(1), row.Int(2) != 0, row.Int(3) != 0};
    };
    return Select<JobOfUser>(*reader, read,
                             "SELECT id, trials, state IN ('queued', 'running'), "
                             "finished_ms = 0 OR finished_ms >= ?2 * 1000 FROM jobs ",
                             "WHERE user = ?1", user, since_s);
  }

  // Returns the lock under which sums of a job are read and then kept. It is not held if a write is
  // under way, because a read waits for none, and for the import, which is large: a write would
  // wait for its sum. The sum is not kept then.
  std::unique_lock<std::mutex> LockToKeep(std::string_view job_id) {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (job_id != kImport) static_cast<void>(lock.try_lock());
    return lock;
  }

  // Returns the number of the job's trials from `since_s` on.
  StatusOr<uint64_t> TrialsSince(const std::string& job_id, int64_t since_s) {
    if (const auto trials = times_.CountSince(job_id, since_s)) return *trials;
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    const std::unique_lock<std::mutex> lock = LockToKeep(job_id);
    const auto read = [](const Statement& row) -> StatusOr<TrialTimes::Second> {
      return TrialTimes::Second{row.Int(0), static_cast<uint64_t>(row.Int(1))};
    };
    KILN_ASSIGN_OR_RETURN(
        const std::vector<TrialTimes::Second> seconds,
        Select<TrialTimes::Second>(*reader, read, "SELECT timestamp_s, count(*) FROM records ",
                                   "WHERE job_id = ? GROUP BY timestamp_s ORDER BY timestamp_s",
                                   job_id));
    if (lock.owns_lock()) times_.Begin(job_id, seconds);
    uint64_t trials = 0;
    for (const auto& [at_s, count] : seconds) trials += at_s >= since_s ? count : 0;
    return trials;
  }

  // Returns the bytes of the job's records.
  StatusOr<uint64_t> BytesOfJob(const std::string& job_id) {
    if (const auto bytes = bytes_.Find(job_id)) return *bytes;
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    const std::unique_lock<std::mutex> lock = LockToKeep(job_id);
    KILN_ASSIGN_OR_RETURN(
        Statement query,
        reader->Prepare(
            "SELECT coalesce(sum(length(steps) + length(costs_s) + length(remeasured_costs_s) + "
            "length(message) + length(times) + length(device_state) + length(mark) + "
            "length(hardware) + length(target) + length(workload_key) + ?2), 0) "
            "FROM records WHERE job_id = ?1"));
    KILN_RETURN_IF_ERROR(query.Bind(job_id, kRecordBytes));
    KILN_RETURN_IF_ERROR(query.Step().status());
    const auto bytes = static_cast<uint64_t>(query.Int(0));
    if (lock.owns_lock()) bytes_.Begin(job_id, bytes);
    return bytes;
  }

  // Deletes all records of the ids in one transaction. Returns how many there were.
  StatusOr<int64_t> DeleteEach(std::span<const int64_t> ids,
                               StatusOr<bool> (SqliteWrites::*remove)(int64_t)) {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    int64_t deleted = 0;
    for (const int64_t id : ids) {
      KILN_ASSIGN_OR_RETURN(const bool was_there, (writes_.*remove)(id));
      deleted += was_there;
    }
    tallies_.ForgetAll();
    bests_.ForgetAll();
    bytes_.ForgetAll();
    times_.ForgetAll();
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return deleted;
  }

  // Guards the writing connection and `writes_`.
  std::mutex mutex_;
  const std::unique_ptr<Database> database_;
  SqliteWrites writes_;
  // Commits the writes that come from many jobs at a time.
  GroupCommit commits_;
  ConnectionPool readers_;
  // These belong to the writer, which has mutex_; all threads read them.
  TrialTallies tallies_;
  BestOfJobs bests_;
  BytesOfJobs bytes_;
  TrialTimes times_;
};

}  // namespace

StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                 const sqlite::OpenOptions& options) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                        Database::Open(path, kApplicationId, options));
  KILN_RETURN_IF_ERROR(
      database->Execute(fmt::format("PRAGMA cache_size=-{}", kWriterCacheKiB).c_str()));
  const bool read_only = options.mode == sqlite::OpenOptions::Mode::kReadOnly;
  KILN_RETURN_IF_ERROR(sqlite::CheckSchemaIsOurs(*database, Migrations()));
  KILN_RETURN_IF_ERROR(sqlite::Migrate(*database, Migrations(), read_only));
  return std::unique_ptr<Store>(new SqliteStore(std::move(database), options));
}

}  // namespace kiln::store
