#include "store/sqlite_store.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <utility>

#include "base/digest.h"
#include "base/unique_id.h"
#include "store/schema.h"

namespace kiln::store {
namespace {

using sqlite::Blob;
using sqlite::Database;
using sqlite::Statement;
using sqlite::Transaction;

// [1e-05, 2.5e-05]: JSON, with as many digits as it takes to read the same numbers back.
template <typename Numbers>
std::string PrintNumbers(const Numbers& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

template <typename Number>
StatusOr<std::vector<Number>> ParseNumbers(std::string_view text, std::string_view column) {
  std::vector<Number> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  auto damaged = [&] {
    return DataLoss("column {} holds '{}', expected a list of numbers", column, text);
  };
  if (at == end || *at++ != '[') return damaged();
  while (at != end && *at != ']') {
    if (!numbers.empty() && (end - at < 2 || *at++ != ',' || *at++ != ' ')) return damaged();
    Number number;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return damaged();
    numbers.push_back(number);
    at = next;
  }
  if (end - at != 1) return damaged();
  return numbers;
}

constexpr const char kJobColumns[] =
    "SELECT id, name, user, priority, state, message, spec, created_ms, started_ms, finished_ms "
    "FROM jobs ";

StatusOr<JobRow> ReadJob(const Statement& row) {
  JobRow job;
  job.id = row.Text(0);
  job.name = row.Text(1);
  job.user = row.Text(2);
  job.priority = static_cast<int32_t>(row.Int(3));
  KILN_ASSIGN_OR_RETURN(job.state, ParseJobState(row.Text(4)));
  job.message = row.Text(5);
  job.spec = row.Text(6);
  job.created_ms = row.Int(7);
  job.started_ms = row.Int(8);
  job.finished_ms = row.Int(9);
  return job;
}

StatusOr<TaskRow> ReadTask(const Statement& row) {
  TaskRow task;
  task.job_id = row.Text(0);
  task.index = static_cast<uint32_t>(row.Int(1));
  task.workload_key = row.Text(2);
  task.dag = row.Text(3);
  task.target = row.Text(4);
  task.weight = row.Double(5);
  task.description = row.Text(6);
  task.flop_count = row.Double(7);
  task.reference_cost_s = row.Double(8);
  if (const int64_t index = row.Int(9); index >= 0) {
    task.alternative_of = static_cast<uint32_t>(index);
  }
  task.form = row.Text(10);
  task.preparation = row.Text(11);
  task.network = row.Text(12);
  return task;
}

constexpr const char kRecordColumns[] =
    "SELECT r.id, job_id, task_index, trial, workload_key, d.text, target, hardware, steps, "
    "costs_s, "
    "error, message, build_s, run_s, timestamp_s, device, builder, runner, stopped_early, "
    "max_error, flop_count, origin, score, final_costs_s, confidence_s, times, final_readings, "
    "final_run_s, final_device, unchecked FROM records r LEFT JOIN dags d ON d.id = r.dag_id ";

// The order of BetterThan().
constexpr const char kBestFirst[] = " ORDER BY stopped_early, mean_cost_s, r.id LIMIT 1";

StatusOr<Record> ReadRecord(const Statement& row) {
  Record record;
  record.id = row.Int(0);
  record.job_id = row.Text(1);
  record.task_index = static_cast<uint32_t>(row.Int(2));
  record.trial = static_cast<uint32_t>(row.Int(3));
  record.workload_key = row.Text(4);
  record.dag = row.Text(5);
  record.target = row.Text(6);
  KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> hardware,
                        ParseNumbers<int64_t>(row.Text(7), "hardware"));
  if (hardware.size() != record.hardware.size()) {
    return DataLoss("record {}: {} hardware parameters, expected {}", record.id, hardware.size(),
                    record.hardware.size());
  }
  std::copy(hardware.begin(), hardware.end(), record.hardware.begin());
  record.steps = row.Text(8);
  KILN_ASSIGN_OR_RETURN(record.costs_s, ParseNumbers<double>(row.Text(9), "costs_s"));
  record.error = static_cast<int>(row.Int(10));
  record.message = row.Text(11);
  record.build_s = row.Double(12);
  record.run_s = row.Double(13);
  record.timestamp_s = row.Int(14);
  record.device = row.Text(15);
  record.builder = row.Text(16);
  record.runner = row.Text(17);
  record.stopped_early = row.Int(18) != 0;
  record.max_error = row.Double(19);
  record.flop_count = row.Double(20);
  record.origin = row.Text(21);
  record.score = row.Double(22);
  KILN_ASSIGN_OR_RETURN(record.final_costs_s, ParseNumbers<double>(row.Text(23), "final_costs_s"));
  record.confidence_s = row.Double(24);
  record.times = row.Text(25);
  record.final_readings = static_cast<uint32_t>(row.Int(26));
  record.final_run_s = row.Double(27);
  record.final_device = row.Text(28);
  record.unchecked = row.Text(29);
  return record;
}

StatusOr<RoundRow> ReadRound(const Statement& row) {
  RoundRow round;
  round.job_id = row.Text(0);
  round.number = static_cast<uint32_t>(row.Int(1));
  round.task_index = static_cast<uint32_t>(row.Int(2));
  round.elapsed_s = row.Double(3);
  round.trials = static_cast<uint32_t>(row.Int(4));
  round.total_latency_s = row.Double(5);
  KILN_ASSIGN_OR_RETURN(round.best_s, ParseNumbers<double>(row.Text(6), "best_s"));
  round.search_s = row.Double(7);
  round.report = row.Text(8);
  return round;
}

class SqliteStore final : public Store {
 public:
  using Store::AddJob;

  explicit SqliteStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  Status AddJob(const JobRow& job, std::span<const TaskRow> tasks) override {
    std::lock_guard lock(mutex_);
    if (job.id.empty()) return InvalidArgument("a job needs an id, found none");
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare(
            "INSERT INTO jobs (id, name, user, priority, state, message, spec, created_ms, "
            "started_ms, finished_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    KILN_RETURN_IF_ERROR(insert.Bind(job.id, job.name, job.user, job.priority,
                                     JobStateName(job.state), job.message, Blob{job.spec},
                                     job.created_ms, job.started_ms, job.finished_ms));
    if (Status status = insert.Run(); !status.ok()) {
      if (status.code() != StatusCode::kAlreadyExists) return status;
      return AlreadyExists("job {} exists already", job.id);
    }
    KILN_RETURN_IF_ERROR(InsertTasks(job.id, tasks));
    return transaction.Commit();
  }

  Status UpdateJobState(std::string_view job_id, JobState state, std::string_view message,
                        int64_t now_ms) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(JobRow job, FindJob(job_id));
    KILN_ASSIGN_OR_RETURN(const bool changed, ApplyJobState(job, state, message, now_ms));
    if (!changed) return OkStatus();
    KILN_ASSIGN_OR_RETURN(
        Statement update,
        database_->Prepare("UPDATE jobs SET state = ?, message = ?, started_ms = ?, "
                           "finished_ms = ? WHERE id = ?"));
    KILN_RETURN_IF_ERROR(
        update.Bind(JobStateName(job.state), job.message, job.started_ms, job.finished_ms, job.id));
    KILN_RETURN_IF_ERROR(update.Run());
    return transaction.Commit();
  }

  StatusOr<JobRow> GetJob(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    return FindJob(job_id);
  }

  StatusOr<std::vector<JobRow>> ListJobs(uint32_t limit) override {
    std::lock_guard lock(mutex_);
    const int64_t rows = limit == 0 ? -1 : int64_t{limit};
    return Select<JobRow>(ReadJob, kJobColumns, "ORDER BY number DESC LIMIT ?", rows);
  }

  StatusOr<std::vector<JobRow>> LoadUnfinishedJobs() override {
    std::lock_guard lock(mutex_);
    return Select<JobRow>(ReadJob, kJobColumns,
                          "WHERE state IN ('queued', 'running') ORDER BY number");
  }

  Status AddTasks(std::string_view job_id, std::span<const TaskRow> tasks) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_RETURN_IF_ERROR(FindJob(job_id).status());
    KILN_RETURN_IF_ERROR(InsertTasks(job_id, tasks));
    return transaction.Commit();
  }

  StatusOr<std::vector<TaskRow>> TasksOfJob(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    return Select<TaskRow>(ReadTask,
                           "SELECT job_id, task_index, workload_key, d.text, target, weight, "
                           "description, flop_count, reference_cost_s, "
                           "coalesce(alternative_of, -1), form, preparation, network "
                           "FROM tasks t LEFT JOIN dags d ON d.id = t.dag_id ",
                           "WHERE job_id = ? ORDER BY task_index", job_id);
  }

  Status SetReferenceCost(std::string_view job_id, uint32_t task_index, double cost_s) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Statement update,
                          database_->Prepare("UPDATE tasks SET reference_cost_s = ? "
                                             "WHERE job_id = ? AND task_index = ?"));
    KILN_RETURN_IF_ERROR(update.Bind(cost_s, job_id, task_index));
    KILN_RETURN_IF_ERROR(update.Run());
    if (database_->changes() == 0) return NotFound("no task {} in job {}", task_index, job_id);
    return OkStatus();
  }

  StatusOr<int64_t> AddRecord(const Record& record) override {
    KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, AddRecords({&record, 1}));
    return ids.front();
  }

  StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records) override {
    for (const Record& record : records) KILN_RETURN_IF_ERROR(ValidateRecord(record));
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    std::vector<int64_t> ids;
    for (const Record& record : records) {
      KILN_ASSIGN_OR_RETURN(const int64_t id, InsertRecord(record));
      ids.push_back(id);
    }
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return ids;
  }

  StatusOr<Record> GetRecord(int64_t id) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(std::optional<Record> record, SelectOne("WHERE r.id = ?", id));
    if (!record) return NotFound("no record {}", id);
    return *std::move(record);
  }

  StatusOr<std::vector<Record>> RecordsOfJob(std::string_view job_id,
                                             uint32_t from_trial) override {
    std::lock_guard lock(mutex_);
    return Select<Record>(ReadRecord, kRecordColumns,
                          "WHERE job_id = ? AND trial >= ? ORDER BY trial", job_id, from_trial);
  }

  StatusOr<std::vector<Record>> RecordsOfWorkload(std::string_view workload_key,
                                                  std::string_view target) override {
    std::lock_guard lock(mutex_);
    return Select<Record>(ReadRecord, kRecordColumns,
                          "WHERE workload_key = ?1 AND (?2 = '' OR target = ?2) ORDER BY r.id",
                          workload_key, target);
  }

  StatusOr<std::vector<Record>> LatestRecords(std::string_view target, uint32_t limit) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(
        std::vector<Record> records,
        Select<Record>(ReadRecord, kRecordColumns, "WHERE target = ? ORDER BY r.id DESC LIMIT ?",
                       target, limit));
    std::reverse(records.begin(), records.end());
    return records;
  }

  StatusOr<std::optional<Record>> BestRecord(std::string_view workload_key,
                                             std::string_view target) override {
    std::lock_guard lock(mutex_);
    if (!target.empty()) return BestFor(workload_key, target);
    return SelectOne(fmt::format("WHERE workload_key = ? AND error = 0{}", kBestFirst),
                     workload_key);
  }

  StatusOr<std::vector<Record>> BestPerTarget(std::string_view workload_key) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(
        const std::vector<std::string> targets,
        Select<std::string>([](const Statement& row) { return StatusOr<std::string>(row.Text(0)); },
                            "SELECT DISTINCT target FROM records ",
                            "WHERE workload_key = ? AND error = 0 ORDER BY target", workload_key));
    std::vector<Record> best;
    for (const std::string& target : targets) {
      KILN_ASSIGN_OR_RETURN(std::optional<Record> record, BestFor(workload_key, target));
      if (record) best.push_back(*std::move(record));
    }
    return best;
  }

  StatusOr<std::optional<Record>> BestOfJob(std::string_view job_id, uint32_t task_index) override {
    std::lock_guard lock(mutex_);
    return SelectOne(fmt::format("WHERE job_id = ? AND task_index = ? AND error = 0{}", kBestFirst),
                     job_id, task_index);
  }

  StatusOr<TrialCounts> CountTrials(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(
        Statement query,
        database_->Prepare(
            "SELECT task_index, error, count(*), max(trial), sum(run_s), sum(final_run_s) "
            "FROM records WHERE job_id = ? GROUP BY task_index, error"));
    KILN_RETURN_IF_ERROR(query.Bind(job_id));
    TrialCounts counts;
    KILN_ASSIGN_OR_RETURN(counts.runners, CountRunners(job_id));
    while (true) {
      KILN_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return counts;
      const int64_t trials = query.Int(2);
      counts.total += trials;
      counts.by_task[static_cast<uint32_t>(query.Int(0))] += trials;
      counts.by_error[query.Int(1)] += trials;  // 0 to 8: the schema checks it
      const double run_s = query.Double(4);
      if (run_s > 0) counts.run_s += run_s;  // of an import it is not known
      counts.final_run_s += query.Double(5);
      counts.next_trial = std::max(counts.next_trial, static_cast<uint32_t>(query.Int(3)) + 1);
    }
  }

  Status SetFinals(std::span<const Finals> finals) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    for (const Finals& f : finals) {
      KILN_ASSIGN_OR_RETURN(std::optional<Record> found, SelectOne("WHERE r.id = ?", f.id));
      if (!found) return NotFound("no record {}", f.id);
      KILN_ASSIGN_OR_RETURN(const Record record, WithFinals(*std::move(found), f));
      KILN_RETURN_IF_ERROR(UpdateFinals(record));
    }
    return transaction.Commit();
  }

  StatusOr<uint32_t> AddRound(const RoundRow& row) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_RETURN_IF_ERROR(FindJob(row.job_id).status());
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
                                     row.total_latency_s, PrintNumbers(row.best_s), row.search_s,
                                     row.report));
    KILN_RETURN_IF_ERROR(insert.Run());
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return static_cast<uint32_t>(number);
  }

  StatusOr<std::vector<RoundRow>> RoundsOfJob(std::string_view job_id, uint32_t from) override {
    std::lock_guard lock(mutex_);
    return Select<RoundRow>(ReadRound,
                            "SELECT job_id, number, task_index, elapsed_s, trials, "
                            "total_latency_s, best_s, search_s, report FROM rounds ",
                            "WHERE job_id = ? AND number >= ? ORDER BY number", job_id, from);
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

  StatusOr<bool> HasMeasurement(const Record& record) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(
        Statement query,
        database_->Prepare("SELECT 1 FROM records WHERE workload_key = ? AND timestamp_s = ? "
                           "AND error = ? AND target = ? AND steps = ? LIMIT 1"));
    KILN_RETURN_IF_ERROR(query.Bind(record.workload_key, record.timestamp_s, record.error,
                                    record.target, record.steps));
    return query.Step();
  }

 protected:
  StatusOr<std::vector<Record>> Page(const RecordFilter& filter, uint32_t limit) override {
    std::lock_guard lock(mutex_);
    // Spelled out by what is set, so that each form gets its index. Unset parameters are bound and
    // unused.
    std::string where = "WHERE r.id > ?1";
    if (!filter.include_errors) where += " AND error = 0";
    where += filter.job_id.empty() ? " AND ?2 = ''" : " AND job_id = ?2";
    where += filter.workload_key.empty() ? " AND ?3 = ''" : " AND workload_key = ?3";
    where += filter.target.empty() ? " AND ?4 = ''" : " AND target = ?4";
    where += " ORDER BY r.id LIMIT ?5";
    return Select<Record>(ReadRecord, kRecordColumns, where, filter.after_id, filter.job_id,
                          filter.workload_key, filter.target, limit);
  }

 private:
  template <typename Row, typename Read, typename... Values>
  StatusOr<std::vector<Row>> Select(Read read, std::string_view columns, std::string_view where,
                                    const Values&... values) {
    KILN_ASSIGN_OR_RETURN(Statement query, database_->Prepare(fmt::format("{}{}", columns, where)));
    KILN_RETURN_IF_ERROR(query.Bind(values...));
    std::vector<Row> rows;
    while (true) {
      KILN_ASSIGN_OR_RETURN(const bool found, query.Step());
      if (!found) return rows;
      KILN_ASSIGN_OR_RETURN(Row row, read(query));
      rows.push_back(std::move(row));
    }
  }

  template <typename... Values>
  StatusOr<std::optional<Record>> SelectOne(std::string_view where, const Values&... values) {
    KILN_ASSIGN_OR_RETURN(std::vector<Record> records,
                          Select<Record>(ReadRecord, kRecordColumns, where, values...));
    if (records.empty()) return std::optional<Record>();
    return std::optional<Record>(std::move(records.front()));
  }

  StatusOr<std::optional<Record>> BestFor(std::string_view workload_key, std::string_view target) {
    return SelectOne(
        fmt::format("WHERE workload_key = ? AND target = ? AND error = 0{}", kBestFirst),
        workload_key, target);
  }

  StatusOr<int64_t> CountRunners(std::string_view job_id) {
    KILN_ASSIGN_OR_RETURN(Statement query,
                          database_->Prepare("SELECT count(DISTINCT runner) FROM records "
                                             "WHERE job_id = ? AND runner != ''"));
    KILN_RETURN_IF_ERROR(query.Bind(job_id));
    KILN_RETURN_IF_ERROR(query.Step().status());
    return query.Int(0);
  }

  StatusOr<JobRow> FindJob(std::string_view job_id) {
    KILN_ASSIGN_OR_RETURN(std::vector<JobRow> jobs,
                          Select<JobRow>(ReadJob, kJobColumns, "WHERE id = ?", job_id));
    if (jobs.empty()) return NotFound("no job {}", job_id);
    return std::move(jobs.front());
  }

  // The id of the DAG's row, made if it is not there; -1 for no DAG.
  StatusOr<int64_t> DagId(std::string_view dag) {
    if (dag.empty()) return -1;
    const std::string digest = Sha256Hex(dag);
    KILN_ASSIGN_OR_RETURN(Statement find,
                          database_->Prepare("SELECT id FROM dags WHERE digest = ?"));
    KILN_RETURN_IF_ERROR(find.Bind(digest));
    KILN_ASSIGN_OR_RETURN(const bool found, find.Step());
    if (found) return find.Int(0);
    KILN_ASSIGN_OR_RETURN(Statement insert,
                          database_->Prepare("INSERT INTO dags (digest, text) VALUES (?, ?)"));
    KILN_RETURN_IF_ERROR(insert.Bind(digest, dag));
    KILN_RETURN_IF_ERROR(insert.Run());
    return database_->last_insert_id();
  }

  Status InsertTasks(std::string_view job_id, std::span<const TaskRow> tasks) {
    for (const TaskRow& given : tasks) {
      KILN_ASSIGN_OR_RETURN(const TaskRow task, TaskOfJob(given, job_id));
      KILN_ASSIGN_OR_RETURN(const int64_t dag_id, DagId(task.dag));
      KILN_ASSIGN_OR_RETURN(
          Statement insert,
          database_->Prepare("INSERT INTO tasks (job_id, task_index, workload_key, dag_id, target, "
                             "weight, description, flop_count, reference_cost_s, "
                             "alternative_of, form, preparation, network) VALUES "
                             "(?, ?, ?, nullif(?, -1), ?, ?, ?, ?, ?, nullif(?, -1), ?, ?, ?)"));
      KILN_RETURN_IF_ERROR(insert.Bind(job_id, task.index, task.workload_key, dag_id, task.target,
                                       task.weight, task.description, task.flop_count,
                                       task.reference_cost_s,
                                       task.alternative_of ? int64_t{*task.alternative_of} : -1,
                                       task.form, task.preparation, task.network));
      if (Status status = insert.Run(); !status.ok()) {
        if (status.code() != StatusCode::kAlreadyExists) return status;
        return AlreadyExists("job {} has a task {} already", job_id, task.index);
      }
    }
    return OkStatus();
  }

  Status UpdateFinals(const Record& record) {
    KILN_ASSIGN_OR_RETURN(
        Statement update,
        database_->Prepare(
            "UPDATE records SET costs_s = ?1, final_costs_s = ?2, confidence_s = ?3, "
            "error = ?4, message = ?5, mean_cost_s = iif(?4 = 0, ?6, NULL), final_readings = ?7, "
            "final_run_s = ?8, final_device = ?9 WHERE id = ?10"));
    KILN_RETURN_IF_ERROR(
        update.Bind(PrintNumbers(record.costs_s), PrintNumbers(record.final_costs_s),
                    record.confidence_s, record.error, record.message, Cost(record),
                    record.final_readings, record.final_run_s, record.final_device, record.id));
    return update.Run();
  }

  StatusOr<int64_t> InsertRecord(const Record& record) {
    KILN_RETURN_IF_ERROR(FindJob(record.job_id).status());
    KILN_ASSIGN_OR_RETURN(const int64_t dag_id, DagId(record.dag));
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare(
            "INSERT INTO records (job_id, task_index, trial, workload_key, dag_id, target, "
            "hardware, steps, "
            "costs_s, mean_cost_s, error, message, build_s, run_s, timestamp_s, device, builder, "
            "runner, "
            "stopped_early, max_error, flop_count, origin, score, final_costs_s, confidence_s, "
            "times, final_readings, final_run_s, final_device, unchecked) "
            "VALUES (?1, ?2, ?3, ?4, nullif(?5, -1), ?6, ?7, ?8, ?9, iif(?11 = 0, ?10, NULL), ?11, "
            "?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, "
            "?29, ?30)"));
    KILN_RETURN_IF_ERROR(insert.Bind(
        record.job_id, record.task_index, record.trial, record.workload_key, dag_id, record.target,
        PrintNumbers(record.hardware), record.steps, PrintNumbers(record.costs_s), Cost(record),
        record.error, record.message, record.build_s, record.run_s, record.timestamp_s,
        record.device, record.builder, record.runner, record.stopped_early, record.max_error,
        record.flop_count, record.origin, record.score, PrintNumbers(record.final_costs_s),
        record.confidence_s, Blob{record.times}, record.final_readings, record.final_run_s,
        record.final_device, record.unchecked));
    if (Status status = insert.Run(); !status.ok()) {
      if (status.code() != StatusCode::kAlreadyExists) return status;
      return AlreadyExists("job {} has a record of trial {} already", record.job_id, record.trial);
    }
    return database_->last_insert_id();
  }

  std::mutex mutex_;
  const std::unique_ptr<Database> database_;  // guarded by mutex_
};

}  // namespace

StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                 const sqlite::OpenOptions& options) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                        Database::Open(path, kApplicationId, options));
  const bool read_only = options.mode == sqlite::OpenOptions::Mode::kReadOnly;
  KILN_RETURN_IF_ERROR(sqlite::Migrate(*database, Migrations(), read_only));
  return std::unique_ptr<Store>(new SqliteStore(std::move(database)));
}

}  // namespace kiln::store
