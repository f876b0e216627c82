#include "store/sqlite_store.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/unique_id.h"
#include "base/utf8.h"
#include "store/connection_pool.h"
#include "store/json_cursor.h"
#include "store/schema.h"

namespace kiln::store {
namespace {

using sqlite::Blob;
using sqlite::ConnectionPool;
using sqlite::Database;
using sqlite::ReadTransaction;
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

// ["a", "b"].
StatusOr<std::vector<std::string>> ParseTexts(std::string_view text, std::string_view column) {
  std::vector<std::string> texts;
  JsonCursor json(text);
  const auto parse = [&]() -> Status {
    KILN_RETURN_IF_ERROR(json.Expect('[', "a list of texts"));
    bool more = !json.Take(']');
    while (more) {
      KILN_ASSIGN_OR_RETURN(texts.emplace_back(), json.String("a text"));
      KILN_ASSIGN_OR_RETURN(more, json.Next(']'));
    }
    return json.ExpectEnd();
  };
  if (parse().ok()) return texts;
  return DataLoss("column {} holds '{}', expected a list of texts", column, text);
}

// As many reads at a time; more wait. Each connection has a page cache of its own.
constexpr size_t kMostReaders = 8;

constexpr const char kJobColumns[] =
    "SELECT id, name, user, priority, state, message, spec, created_ms, started_ms, finished_ms, "
    "ending, active_s, fruitless_runs FROM jobs ";

// Bytes that are no UTF-8, of older files, would spoil every message that they get into.
std::string TextOf(const Statement& row, int column) {
  std::string text = row.Text(column);
  const bool ascii = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return ascii ? text : ValidUtf8(text);
}

StatusOr<JobRow> ReadJob(const Statement& row) {
  JobRow job;
  job.id = TextOf(row, 0);
  job.name = TextOf(row, 1);
  job.user = TextOf(row, 2);
  job.priority = static_cast<int32_t>(row.Int(3));
  job.message = TextOf(row, 5);
  const StatusOr<JobState> state = ParseJobState(row.Text(4));
  // Somebody else wrote it: the job is shown, and does not run.
  if (!state.ok()) job.message = Message(state.status());
  job.state = state.ok() ? *state : JobState::kFailed;
  job.spec = row.Text(6);
  job.created_ms = row.Int(7);
  job.started_ms = row.Int(8);
  job.finished_ms = row.Int(9);
  job.progress.ending = static_cast<JobEnding>(row.Int(10));
  job.progress.active_s = row.Double(11);
  job.fruitless_runs = static_cast<int32_t>(row.Int(12));
  return job;
}

StatusOr<TaskRow> ReadTask(const Statement& row) {
  TaskRow task;
  task.job_id = TextOf(row, 0);
  task.index = static_cast<uint32_t>(row.Int(1));
  task.workload_key = TextOf(row, 2);
  task.dag = TextOf(row, 3);
  task.target = TextOf(row, 4);
  task.weight = row.Double(5);
  task.description = TextOf(row, 6);
  task.flop_count = row.Double(7);
  task.reference_cost_s = row.Double(8);
  if (const int64_t index = row.Int(9); index >= 0) {
    task.alternative_of = static_cast<uint32_t>(index);
  }
  task.form = TextOf(row, 10);
  task.preparation = TextOf(row, 11);
  task.network = TextOf(row, 12);
  task.workload_id = TextOf(row, 13);
  return task;
}

StatusOr<int> ErrorKindOf(int64_t stored, std::string_view job_id) {
  if (stored >= 0 && stored < kNumErrorKinds) return static_cast<int>(stored);
  return DataLoss("a record of job {} has the error kind {}, expected 0 to {}", job_id, stored,
                  kNumErrorKinds - 1);
}

constexpr const char kRecordColumns[] =
    "SELECT r.id, job_id, task_index, trial, workload_key, d.text, target, hardware, steps, "
    "costs_s, "
    "error, message, build_s, run_s, timestamp_s, device, builder, runner, stopped_early, "
    "max_error, flop_count, origin, score, final_costs_s, confidence_s, times, final_readings, "
    "final_run_s, final_device, workload_id, unchecked, sampled_outputs, target_host, "
    "layout_rewrite_option, input_names, m.text "
    "FROM records r LEFT JOIN dags d ON d.id = r.dag_id "
    "LEFT JOIN device_models m ON m.id = r.device_model_id ";

// The order of BetterThan().
constexpr const char kBestFirst[] = " ORDER BY stopped_early, mean_cost_s, r.id LIMIT 1";

StatusOr<Record> ReadRecord(const Statement& row) {
  Record record;
  record.id = row.Int(0);
  record.job_id = TextOf(row, 1);
  record.task_index = static_cast<uint32_t>(row.Int(2));
  record.trial = static_cast<uint32_t>(row.Int(3));
  record.workload_key = TextOf(row, 4);
  record.dag = TextOf(row, 5);
  record.target = TextOf(row, 6);
  KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> hardware,
                        ParseNumbers<int64_t>(row.Text(7), "hardware"));
  if (hardware.size() != record.hardware.size()) {
    return DataLoss("record {}: {} hardware parameters, expected {}", record.id, hardware.size(),
                    record.hardware.size());
  }
  std::copy(hardware.begin(), hardware.end(), record.hardware.begin());
  record.steps = TextOf(row, 8);
  KILN_ASSIGN_OR_RETURN(record.costs_s, ParseNumbers<double>(row.Text(9), "costs_s"));
  KILN_ASSIGN_OR_RETURN(record.error, ErrorKindOf(row.Int(10), record.job_id));
  record.message = TextOf(row, 11);
  record.build_s = row.Double(12);
  record.run_s = row.Double(13);
  record.timestamp_s = row.Int(14);
  record.device = TextOf(row, 15);
  record.builder = TextOf(row, 16);
  record.runner = TextOf(row, 17);
  record.stopped_early = row.Int(18) != 0;
  record.max_error = row.Double(19);
  record.flop_count = row.Double(20);
  record.origin = TextOf(row, 21);
  record.score = row.Double(22);
  KILN_ASSIGN_OR_RETURN(record.final_costs_s, ParseNumbers<double>(row.Text(23), "final_costs_s"));
  record.confidence_s = row.Double(24);
  record.times = row.Text(25);
  record.final_readings = static_cast<uint32_t>(row.Int(26));
  record.final_run_s = row.Double(27);
  record.final_device = TextOf(row, 28);
  record.workload_id = TextOf(row, 29);
  record.unchecked = TextOf(row, 30);
  record.sampled_outputs = row.Int(31);
  record.target_host = TextOf(row, 32);
  record.layout_rewrite_option = row.Int(33);
  KILN_ASSIGN_OR_RETURN(record.input_names, ParseTexts(TextOf(row, 34), "input_names"));
  record.device_model = TextOf(row, 35);
  return record;
}

StatusOr<RoundRow> ReadRound(const Statement& row) {
  RoundRow round;
  round.job_id = TextOf(row, 0);
  round.number = static_cast<uint32_t>(row.Int(1));
  round.task_index = static_cast<uint32_t>(row.Int(2));
  round.elapsed_s = row.Double(3);
  round.trials = static_cast<uint32_t>(row.Int(4));
  round.total_latency_s = row.Double(5);
  KILN_ASSIGN_OR_RETURN(round.best_s, ParseNumbers<double>(row.Text(6), "best_s"));
  round.search_s = row.Double(7);
  round.report = TextOf(row, 8);
  return round;
}

StatusOr<CalibrationRow> ReadCalibration(const Statement& row) {
  return CalibrationRow{.device = TextOf(row, 0),
                        .compute_capability = static_cast<int32_t>(row.Int(1)),
                        .constants = TextOf(row, 2),
                        .fitted_s = row.Int(3),
                        .report = TextOf(row, 4)};
}

StatusOr<std::string> ReadText(const Statement& row) { return TextOf(row, 0); }

constexpr const char kComputationColumns[] =
    "SELECT workload_id, workload_key, text, flop_count FROM computations "
    "LEFT JOIN dags ON id = dag_id ";

StatusOr<Computation> ReadComputation(const Statement& row) {
  return Computation{
      .id = row.Text(0), .key = row.Text(1), .dag = row.Text(2), .flop_count = row.Double(3)};
}

// ["a", "b"], for json_each. Bytes that JSON has no place for never stand in a name that is stored.
std::string JsonOf(const std::vector<std::string>& names) {
  std::string json = "[";
  for (const std::string& name : names) {
    json += json.size() > 1 ? "," : "";
    json += JsonQuote(name);
  }
  return json + "]";
}

// `names`: a parameter that holds JsonOf.
std::string IsNamed(std::string_view names) {
  return fmt::format("workload IN (SELECT value FROM json_each({}))", names);
}

template <typename Row, typename Read, typename... Values>
StatusOr<std::vector<Row>> Select(Database& database, Read read, std::string_view columns,
                                  std::string_view where, const Values&... values) {
  KILN_ASSIGN_OR_RETURN(Statement query, database.Prepare(fmt::format("{}{}", columns, where)));
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
StatusOr<std::vector<Record>> SelectRecords(Database& database, std::string_view where,
                                            const Values&... values) {
  return Select<Record>(database, ReadRecord, kRecordColumns, where, values...);
}

template <typename... Values>
StatusOr<std::optional<Record>> SelectOne(Database& database, std::string_view where,
                                          const Values&... values) {
  KILN_ASSIGN_OR_RETURN(std::vector<Record> records, SelectRecords(database, where, values...));
  if (records.empty()) return std::optional<Record>();
  return std::optional<Record>(std::move(records.front()));
}

StatusOr<JobRow> FindJob(Database& database, std::string_view job_id) {
  KILN_ASSIGN_OR_RETURN(std::vector<JobRow> jobs,
                        Select<JobRow>(database, ReadJob, kJobColumns, "WHERE id = ?", job_id));
  if (jobs.empty()) return NotFound("no job {}", job_id);
  return std::move(jobs.front());
}

StatusOr<int64_t> CountRunners(Database& database, std::string_view job_id) {
  KILN_ASSIGN_OR_RETURN(Statement query,
                        database.Prepare("SELECT count(DISTINCT runner) FROM records "
                                         "WHERE job_id = ? AND runner != ''"));
  KILN_RETURN_IF_ERROR(query.Bind(job_id));
  KILN_RETURN_IF_ERROR(query.Step().status());
  return query.Int(0);
}

class SqliteStore final : public Store {
 public:
  using Store::AddJob;
  using Store::AddRecords;

  SqliteStore(std::unique_ptr<Database> writer, const sqlite::OpenOptions& options)
      : database_(std::move(writer)),
        readers_(database_->path(), kApplicationId, options, kMostReaders) {}

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
    KILN_ASSIGN_OR_RETURN(JobRow job, FindJob(*database_, job_id));
    KILN_ASSIGN_OR_RETURN(const bool changed, ApplyJobState(job, state, message, now_ms));
    if (!changed) return OkStatus();
    KILN_RETURN_IF_ERROR(UpdateJob(job));
    return transaction.Commit();
  }

  Status ReopenJob(std::string_view job_id) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(JobRow job, FindJob(*database_, job_id));
    KILN_RETURN_IF_ERROR(ApplyReopen(job));
    KILN_RETURN_IF_ERROR(UpdateJob(job));
    return transaction.Commit();
  }

  Status SetProgress(std::string_view job_id, const JobProgress& progress) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(
        Statement update,
        database_->Prepare("UPDATE jobs SET ending = ?, active_s = ? WHERE id = ?"));
    KILN_RETURN_IF_ERROR(
        update.Bind(static_cast<int64_t>(progress.ending), progress.active_s, job_id));
    KILN_RETURN_IF_ERROR(update.Run());
    if (database_->changes() == 0) return NotFound("no job {}", job_id);
    return OkStatus();
  }

  StatusOr<JobRow> GetJob(std::string_view job_id) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return FindJob(*reader, job_id);
  }

  StatusOr<std::vector<JobRow>> ListJobs(uint32_t limit) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    const int64_t rows = limit == 0 ? -1 : int64_t{limit};
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
    KILN_RETURN_IF_ERROR(InsertTasks(job_id, tasks));
    return transaction.Commit();
  }

  StatusOr<std::vector<TaskRow>> TasksOfJob(std::string_view job_id) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<TaskRow>(*reader, ReadTask,
                           "SELECT job_id, task_index, workload_key, d.text, target, weight, "
                           "description, flop_count, reference_cost_s, "
                           "coalesce(alternative_of, -1), form, preparation, network, workload_id "
                           "FROM tasks t LEFT JOIN dags d ON d.id = t.dag_id ",
                           "WHERE job_id = ? ORDER BY task_index", job_id);
  }

  Status SetReferenceCost(std::string_view job_id, uint32_t task_index, double cost_s) override {
    std::lock_guard lock(mutex_);
    return UpdateReferenceCost({std::string(job_id), task_index, cost_s});
  }

  StatusOr<std::vector<int64_t>> AddRecords(std::span<const Record> records,
                                            std::span<const ReferenceCost> costs) override {
    KILN_RETURN_IF_ERROR(CheckBatch(records));
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    std::vector<int64_t> ids;
    std::set<std::string> jobs;
    for (const Record& record : records) {
      KILN_ASSIGN_OR_RETURN(const int64_t id, InsertOrFind(record));
      ids.push_back(id);
      jobs.insert(record.job_id);
    }
    for (const ReferenceCost& cost : costs) KILN_RETURN_IF_ERROR(UpdateReferenceCost(cost));
    for (const std::string& job : jobs) KILN_RETURN_IF_ERROR(EndFruitlessRuns(job));
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return ids;
  }

  StatusOr<int64_t> ImportRecords(std::string_view job_id,
                                  std::span<const Record> records) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    KILN_ASSIGN_OR_RETURN(uint32_t next_trial, NextTrial(job_id));
    View view(*database_);
    int64_t imported = 0;
    for (const Record& record : records) {
      KILN_ASSIGN_OR_RETURN(const bool known, Knows(view, record));
      if (known) continue;
      Record of_job = record;
      of_job.job_id = job_id;
      of_job.trial = next_trial++;
      KILN_RETURN_IF_ERROR(ValidateRecord(of_job));
      KILN_RETURN_IF_ERROR(InsertRecord(of_job).status());
      ++imported;
    }
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
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return SelectOne(*reader,
                     fmt::format("WHERE job_id = ? AND task_index = ? AND error = 0{}", kBestFirst),
                     job_id, task_index);
  }

  StatusOr<std::optional<Record>> UnscheduledOfJob(std::string_view job_id,
                                                   uint32_t task_index) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    // The text of the steps as in the index, which is used only where it is a literal.
    return SelectOne(*reader,
                     fmt::format("WHERE job_id = ? AND task_index = ? AND steps = '{}' "
                                 "AND error = 0 ORDER BY trial DESC LIMIT 1",
                                 kNoSteps),
                     job_id, task_index);
  }

  StatusOr<TrialCounts> CountTrials(std::string_view job_id) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    KILN_ASSIGN_OR_RETURN(
        Statement query,
        reader->Prepare(
            "SELECT task_index, error, count(*), max(trial), sum(run_s), sum(final_run_s) "
            "FROM records WHERE job_id = ? GROUP BY task_index, error"));
    KILN_RETURN_IF_ERROR(query.Bind(job_id));
    TrialCounts counts;
    KILN_ASSIGN_OR_RETURN(counts.runners, CountRunners(*reader, job_id));
    while (true) {
      KILN_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return counts;
      const int64_t trials = query.Int(2);
      counts.total += trials;
      counts.by_task[static_cast<uint32_t>(query.Int(0))] += trials;
      KILN_ASSIGN_OR_RETURN(const int error, ErrorKindOf(query.Int(1), job_id));
      counts.by_error[static_cast<size_t>(error)] += trials;
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
      KILN_ASSIGN_OR_RETURN(std::optional<Record> found,
                            SelectOne(*database_, "WHERE r.id = ?", f.id));
      if (!found) return NotFound("no record {}", f.id);
      KILN_ASSIGN_OR_RETURN(const Record record, WithFinals(*std::move(found), f));
      KILN_RETURN_IF_ERROR(UpdateFinals(record));
    }
    return transaction.Commit();
  }

  StatusOr<uint32_t> AddRound(const RoundRow& row) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
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
                                     row.total_latency_s, PrintNumbers(row.best_s), row.search_s,
                                     row.report));
    KILN_RETURN_IF_ERROR(insert.Run());
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return static_cast<uint32_t>(number);
  }

  StatusOr<std::vector<RoundRow>> RoundsOfJob(std::string_view job_id, uint32_t from) override {
    KILN_ASSIGN_OR_RETURN(const ConnectionPool::Lease reader, readers_.Take());
    return Select<RoundRow>(*reader, ReadRound,
                            "SELECT job_id, number, task_index, elapsed_s, trials, "
                            "total_latency_s, best_s, search_s, report FROM rounds ",
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
    return Select<CalibrationRow>(*reader, ReadCalibration,
                                  "SELECT device, compute_capability, constants, fitted_s, report "
                                  "FROM calibrations ",
                                  "ORDER BY device, compute_capability");
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
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    int64_t deleted = 0;
    for (const int64_t id : ids) {
      KILN_ASSIGN_OR_RETURN(Statement remove,
                            database_->Prepare("DELETE FROM records WHERE id = ?"));
      KILN_RETURN_IF_ERROR(remove.Bind(id));
      KILN_RETURN_IF_ERROR(remove.Run());
      if (database_->changes() == 0) continue;
      ++deleted;
      KILN_RETURN_IF_ERROR(KeepNumber(id));
    }
    KILN_RETURN_IF_ERROR(transaction.Commit());
    return deleted;
  }

  Status AddComputations(std::span<const Computation> computations) override {
    std::lock_guard lock(mutex_);
    KILN_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
    for (const Computation& computation : computations) {
      KILN_RETURN_IF_ERROR(CheckComputation(computation));
      KILN_RETURN_IF_ERROR(Know(computation));
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
    KILN_RETURN_IF_ERROR(Unbind(computation));
    KILN_RETURN_IF_ERROR(Know(computation));
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
    KILN_ASSIGN_OR_RETURN(const int64_t dag_id, DagId(computation.dag));
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
    View view(*reader);
    return read(view);
  }

 private:
  // Within a transaction of its connection.
  class View final : public Snapshot {
   public:
    explicit View(Database& database) : database_(database) {}

    StatusOr<std::vector<int64_t>> Ids(const RecordFilter& filter, const Names& names,
                                       uint32_t limit) override {
      // Spelled out by what is set, so that each form gets its index. Unset parameters are bound
      // and unused.
      std::string where = "WHERE id > ?1";
      if (!filter.include_errors) where += " AND error = 0";
      where += filter.job_id.empty() ? " AND ?2 = ''" : " AND job_id = ?2";
      where += names.empty() ? " AND ?3 = ''" : " AND " + IsNamed("?3");
      where += filter.target.empty() ? " AND ?4 = ''" : " AND substr(target, 1, length(?4)) = ?4";
      where += filter.device.empty() ? " AND ?5 = ''" : " AND device = ?5";
      where += " AND timestamp_s >= ?6";
      where +=
          filter.top > 0 ? " ORDER BY error != 0, stopped_early, mean_cost_s, id" : " ORDER BY id";
      where += " LIMIT ?7";
      return Select<int64_t>(
          database_, [](const Statement& row) { return StatusOr<int64_t>(row.Int(0)); },
          "SELECT id FROM records ", where, filter.after_id, filter.job_id,
          names.empty() ? std::string() : JsonOf(names), filter.target, filter.device,
          filter.since_s, limit);
    }

    StatusOr<std::vector<Record>> Records(std::span<const int64_t> ids) override {
      std::vector<Record> records;
      for (const int64_t id : ids) {
        KILN_ASSIGN_OR_RETURN(std::optional<Record> record,
                              SelectOne(database_, "WHERE r.id = ?", id));
        if (record) records.push_back(*std::move(record));
      }
      return records;
    }

    StatusOr<std::vector<Record>> RecordsNamed(const Names& names,
                                               std::string_view target) override {
      return SelectRecords(
          database_,
          fmt::format("WHERE {} AND (?2 = '' OR target = ?2) ORDER BY r.id", IsNamed("?1")),
          JsonOf(names), target);
    }

    // One look-up for each target: the first record behind those of the target before.
    StatusOr<std::vector<Record>> BestNamed(std::string_view name,
                                            std::string_view target) override {
      const std::string_view order = " ORDER BY target, stopped_early, mean_cost_s, r.id LIMIT 1";
      if (!target.empty()) {
        return SelectRecords(
            database_, fmt::format("WHERE workload = ? AND target = ? AND error = 0{}", order),
            name, target);
      }
      std::vector<Record> best;
      while (true) {
        const std::string_view behind = best.empty() ? "?2 = ''" : "target > ?2";
        const std::string_view last = best.empty() ? std::string_view() : best.back().target;
        KILN_ASSIGN_OR_RETURN(
            std::optional<Record> next,
            SelectOne(database_,
                      fmt::format("WHERE workload = ?1 AND {} AND error = 0{}", behind, order),
                      name, last));
        if (!next) return best;
        best.push_back(*std::move(next));
      }
    }

    StatusOr<bool> HasMeasurementNamed(std::string_view name, const Record& record) override {
      KILN_ASSIGN_OR_RETURN(
          Statement query,
          database_.Prepare("SELECT 1 FROM records WHERE workload = ? AND timestamp_s = ? "
                            "AND error = ? AND target = ? AND steps = ? LIMIT 1"));
      KILN_RETURN_IF_ERROR(
          query.Bind(name, record.timestamp_s, record.error, record.target, record.steps));
      return query.Step();
    }

    StatusOr<Bearers> BearersOf(std::string_view key) override {
      Bearers bearers;
      KILN_ASSIGN_OR_RETURN(
          bearers.ids,
          Select<std::string>(
              database_,
              [&](const Statement& row) {
                bearers.bound = row.Int(1) != 0;
                return ReadText(row);
              },
              "SELECT workload_id, EXISTS (SELECT 1 FROM bindings WHERE workload_key = ?1) "
              "FROM computations ",
              "WHERE workload_key = ?1 ORDER BY workload_id", key));
      return bearers;
    }

    StatusOr<std::vector<std::string>> KeysOfId(std::string_view workload_id) override {
      return Select<std::string>(database_, ReadText, "SELECT workload_key FROM computations ",
                                 "WHERE workload_id = ? ORDER BY workload_key", workload_id);
    }

   private:
    Database& database_;
  };

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

  // The id of the device model's row, made if it is not there; -1 for none.
  StatusOr<int64_t> DeviceModelId(std::string_view text) {
    if (text.empty()) return -1;
    KILN_ASSIGN_OR_RETURN(Statement find,
                          database_->Prepare("SELECT id FROM device_models WHERE text = ?"));
    KILN_RETURN_IF_ERROR(find.Bind(text));
    KILN_ASSIGN_OR_RETURN(const bool found, find.Step());
    if (found) return find.Int(0);
    KILN_ASSIGN_OR_RETURN(Statement insert,
                          database_->Prepare("INSERT INTO device_models (text) VALUES (?)"));
    KILN_RETURN_IF_ERROR(insert.Bind(text));
    KILN_RETURN_IF_ERROR(insert.Run());
    return database_->last_insert_id();
  }

  // The numbers of records that were deleted are not given again.
  Status KeepNumber(int64_t id) {
    KILN_ASSIGN_OR_RETURN(
        Statement keep, database_->Prepare("UPDATE deleted_records SET highest = max(highest, ?)"));
    KILN_RETURN_IF_ERROR(keep.Bind(id));
    return keep.Run();
  }

  Status Know(const Computation& computation) {
    if (computation.id.empty()) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const int64_t dag_id, DagId(computation.dag));
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare("INSERT OR IGNORE INTO computations (workload_key, workload_id, dag_id, "
                           "flop_count) VALUES (?, ?, nullif(?, -1), ?)"));
    KILN_RETURN_IF_ERROR(
        insert.Bind(computation.key, computation.id, dag_id, computation.flop_count));
    return insert.Run();
  }

  // What the key was bound to, if that is another computation, is so no more.
  Status Unbind(const Computation& computation) {
    KILN_ASSIGN_OR_RETURN(
        const std::vector<std::string> bound,
        Select<std::string>(*database_, ReadText, "SELECT workload_id FROM bindings ",
                            "WHERE workload_key = ?1 AND workload_id != ?2", computation.key,
                            computation.id));
    for (const std::string& id : bound) {
      KILN_ASSIGN_OR_RETURN(
          Statement clear,
          database_->Prepare("UPDATE records SET workload_id = '', dag_id = NULL, flop_count = 0 "
                             "WHERE workload = ?1 AND workload_key = ?2 AND device = '' "
                             "AND runner = ''"));
      KILN_RETURN_IF_ERROR(clear.Bind(id, computation.key));
      KILN_RETURN_IF_ERROR(clear.Run());
      KILN_ASSIGN_OR_RETURN(
          Statement forget,
          database_->Prepare(
              "DELETE FROM computations WHERE workload_id = ?1 AND workload_key = ?2 AND NOT "
              "EXISTS (SELECT 1 FROM tasks WHERE workload_id = ?1 AND workload_key = ?2) AND NOT "
              "EXISTS (SELECT 1 FROM records WHERE workload = ?1 AND workload_key = ?2)"));
      KILN_RETURN_IF_ERROR(forget.Bind(id, computation.key));
      KILN_RETURN_IF_ERROR(forget.Run());
    }
    return OkStatus();
  }

  Status InsertTasks(std::string_view job_id, std::span<const TaskRow> tasks) {
    for (const TaskRow& given : tasks) {
      KILN_ASSIGN_OR_RETURN(const TaskRow task, TaskOfJob(given, job_id));
      KILN_ASSIGN_OR_RETURN(const int64_t dag_id, DagId(task.dag));
      KILN_ASSIGN_OR_RETURN(
          Statement insert,
          database_->Prepare(
              "INSERT INTO tasks (job_id, task_index, workload_key, dag_id, target, weight, "
              "description, flop_count, reference_cost_s, alternative_of, form, preparation, "
              "network, workload_id) "
              "VALUES (?, ?, ?, nullif(?, -1), ?, ?, ?, ?, ?, nullif(?, -1), ?, ?, ?, ?)"));
      KILN_RETURN_IF_ERROR(
          insert.Bind(job_id, task.index, task.workload_key, dag_id, task.target, task.weight,
                      task.description, task.flop_count, task.reference_cost_s,
                      task.alternative_of ? int64_t{*task.alternative_of} : -1, task.form,
                      task.preparation, task.network, task.workload_id));
      if (Status status = insert.Run(); !status.ok()) {
        if (status.code() != StatusCode::kAlreadyExists) return status;
        return AlreadyExists("job {} has a task {} already", job_id, task.index);
      }
      KILN_RETURN_IF_ERROR(Know(ComputationOf(task)));
    }
    return OkStatus();
  }

  StatusOr<uint32_t> NextTrial(std::string_view job_id) {
    KILN_RETURN_IF_ERROR(FindJob(*database_, job_id).status());
    KILN_ASSIGN_OR_RETURN(Statement next,
                          database_->Prepare("SELECT coalesce(max(trial) + 1, 0) FROM records "
                                             "WHERE job_id = ?"));
    KILN_RETURN_IF_ERROR(next.Bind(job_id));
    KILN_RETURN_IF_ERROR(next.Step().status());
    return static_cast<uint32_t>(next.Int(0));
  }

  Status UpdateJob(const JobRow& job) {
    KILN_ASSIGN_OR_RETURN(
        Statement update,
        database_->Prepare("UPDATE jobs SET state = ?, message = ?, started_ms = ?, "
                           "finished_ms = ?, fruitless_runs = ? WHERE id = ?"));
    KILN_RETURN_IF_ERROR(update.Bind(JobStateName(job.state), job.message, job.started_ms,
                                     job.finished_ms, job.fruitless_runs, job.id));
    return update.Run();
  }

  Status EndFruitlessRuns(std::string_view job_id) {
    KILN_ASSIGN_OR_RETURN(Statement update,
                          database_->Prepare("UPDATE jobs SET fruitless_runs = 0 "
                                             "WHERE id = ? AND fruitless_runs != 0"));
    KILN_RETURN_IF_ERROR(update.Bind(job_id));
    return update.Run();
  }

  Status UpdateReferenceCost(const ReferenceCost& cost) {
    KILN_ASSIGN_OR_RETURN(Statement update,
                          database_->Prepare("UPDATE tasks SET reference_cost_s = ? "
                                             "WHERE job_id = ? AND task_index = ?"));
    KILN_RETURN_IF_ERROR(update.Bind(cost.cost_s, cost.job_id, cost.task_index));
    KILN_RETURN_IF_ERROR(update.Run());
    if (database_->changes() == 0) {
      return NotFound("no task {} in job {}", cost.task_index, cost.job_id);
    }
    return OkStatus();
  }

  // The id of the same result when it is there already.
  StatusOr<int64_t> InsertOrFind(const Record& record) {
    const StatusOr<int64_t> inserted = InsertRecord(record);
    if (inserted.status().code() != StatusCode::kAlreadyExists) return inserted;
    KILN_ASSIGN_OR_RETURN(
        const std::optional<Record> there,
        SelectOne(*database_, "WHERE job_id = ? AND trial = ?", record.job_id, record.trial));
    if (there.has_value() && SameTrial(*there, record)) return there->id;
    return inserted;
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
    KILN_RETURN_IF_ERROR(FindJob(*database_, record.job_id).status());
    KILN_ASSIGN_OR_RETURN(const int64_t dag_id, DagId(record.dag));
    KILN_ASSIGN_OR_RETURN(const int64_t model_id, DeviceModelId(record.device_model));
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_->Prepare(
            "INSERT INTO records (id, job_id, task_index, trial, workload_key, dag_id, target, "
            "hardware, steps, "
            "costs_s, mean_cost_s, error, message, build_s, run_s, timestamp_s, device, builder, "
            "runner, "
            "stopped_early, max_error, flop_count, origin, score, final_costs_s, confidence_s, "
            "times, final_readings, final_run_s, final_device, workload_id, unchecked, "
            "sampled_outputs, target_host, layout_rewrite_option, input_names, "
            "device_model_id) "
            "VALUES ((SELECT max(highest, coalesce((SELECT max(id) FROM records), 0)) + 1 "
            "FROM deleted_records), ?1, ?2, ?3, ?4, nullif(?5, -1), ?6, ?7, ?8, ?9, iif(?11 = 0, "
            "?10, NULL), ?11, "
            "?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, "
            "?29, ?30, ?31, ?32, ?33, ?34, ?35, nullif(?36, -1))"));
    KILN_RETURN_IF_ERROR(insert.Bind(
        record.job_id, record.task_index, record.trial, record.workload_key, dag_id, record.target,
        PrintNumbers(record.hardware), record.steps, PrintNumbers(record.costs_s), Cost(record),
        record.error, record.message, record.build_s, record.run_s, record.timestamp_s,
        record.device, record.builder, record.runner, record.stopped_early, record.max_error,
        record.flop_count, record.origin, record.score, PrintNumbers(record.final_costs_s),
        record.confidence_s, Blob{record.times}, record.final_readings, record.final_run_s,
        record.final_device, record.workload_id, record.unchecked, record.sampled_outputs,
        record.target_host, record.layout_rewrite_option, JsonOf(record.input_names), model_id));
    if (Status status = insert.Run(); !status.ok()) {
      if (status.code() != StatusCode::kAlreadyExists) return status;
      return AlreadyExists("job {} has a record of trial {} already", record.job_id, record.trial);
    }
    const int64_t id = database_->last_insert_id();
    KILN_RETURN_IF_ERROR(Know(ComputationOf(record)));
    return id;
  }

  std::mutex mutex_;  // of the writer
  const std::unique_ptr<Database> database_;
  ConnectionPool readers_;
};

}  // namespace

StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                 const sqlite::OpenOptions& options) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                        Database::Open(path, kApplicationId, options));
  const bool read_only = options.mode == sqlite::OpenOptions::Mode::kReadOnly;
  KILN_RETURN_IF_ERROR(sqlite::Migrate(*database, Migrations(), read_only));
  return std::unique_ptr<Store>(new SqliteStore(std::move(database), options));
}

}  // namespace kiln::store
