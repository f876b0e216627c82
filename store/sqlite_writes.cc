#include "store/sqlite_writes.h"

#include <utility>

#include "base/hash/digest.h"
#include "store/sqlite_rows.h"

namespace kiln::store {

using sqlite::Blob;
using sqlite::BorrowedText;
using sqlite::Statement;

StatusOr<SqliteWrites::RowId> SqliteWrites::FindOrInsert(std::string_view find,
                                                         std::string_view insert,
                                                         std::string_view key,
                                                         std::string_view text) {
  KILN_ASSIGN_OR_RETURN(Statement found, database_.Prepare(find));
  KILN_RETURN_IF_ERROR(found.Bind(key));
  KILN_ASSIGN_OR_RETURN(const bool there, found.Step());
  if (there) return RowId(found.Int(0));
  KILN_ASSIGN_OR_RETURN(Statement add, database_.Prepare(insert));
  KILN_RETURN_IF_ERROR(add.Bind(key, text));
  KILN_RETURN_IF_ERROR(add.Run());
  return RowId(database_.last_insert_id());
}

StatusOr<SqliteWrites::RowId> SqliteWrites::DagId(std::string_view dag) {
  if (dag.empty()) return RowId();
  return FindOrInsert("SELECT id FROM dags WHERE digest = ?",
                      "INSERT INTO dags (digest, text) VALUES (?, ?)", Sha256Hex(dag), dag);
}

StatusOr<SqliteWrites::RowId> SqliteWrites::DeviceModelId(std::string_view text) {
  if (text.empty()) return RowId();
  return FindOrInsert("SELECT id FROM device_models WHERE text = ?",
                      "INSERT INTO device_models (text) VALUES (?2)", text, text);
}

StatusOr<bool> SqliteWrites::Delete(std::string_view remove, std::string_view keep, int64_t id) {
  KILN_ASSIGN_OR_RETURN(Statement removal, database_.Prepare(remove));
  KILN_RETURN_IF_ERROR(removal.Bind(id));
  KILN_RETURN_IF_ERROR(removal.Run());
  if (database_.changes() == 0) return false;
  KILN_ASSIGN_OR_RETURN(Statement kept, database_.Prepare(keep));
  KILN_RETURN_IF_ERROR(kept.Bind(id));
  KILN_RETURN_IF_ERROR(kept.Run());
  return true;
}

StatusOr<bool> SqliteWrites::DeleteRecord(int64_t id) {
  return Delete("DELETE FROM records WHERE id = ?",
                "UPDATE deleted_records SET highest = max(highest, ?)", id);
}

StatusOr<bool> SqliteWrites::DeleteAutotvmRecord(int64_t id) {
  return Delete("DELETE FROM autotvm_records WHERE id = ?",
                "UPDATE deleted_records SET highest_autotvm = max(highest_autotvm, ?)", id);
}

Status SqliteWrites::Know(const Computation& computation) {
  if (computation.id.empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const RowId dag_id, DagId(computation.dag));
  KILN_ASSIGN_OR_RETURN(
      Statement insert,
      database_.Prepare("INSERT OR IGNORE INTO computations (workload_key, workload_id, dag_id, "
                        "flop_count) VALUES (?, ?, ?, ?)"));
  KILN_RETURN_IF_ERROR(
      insert.Bind(computation.key, computation.id, dag_id, computation.flop_count));
  return insert.Run();
}

Status SqliteWrites::Unbind(const Computation& computation) {
  KILN_ASSIGN_OR_RETURN(
      const std::vector<std::string> bound,
      Select<std::string>(database_, ReadText, "SELECT workload_id FROM bindings ",
                          "WHERE workload_key = ?1 AND workload_id != ?2", computation.key,
                          computation.id));
  for (const std::string& id : bound) {
    KILN_ASSIGN_OR_RETURN(
        Statement clear,
        database_.Prepare("UPDATE records SET workload_id = '', dag_id = NULL, flop_count = 0 "
                          "WHERE workload = ?1 AND workload_key = ?2 AND device = '' "
                          "AND runner = ''"));
    KILN_RETURN_IF_ERROR(clear.Bind(id, computation.key));
    KILN_RETURN_IF_ERROR(clear.Run());
    KILN_ASSIGN_OR_RETURN(
        Statement forget,
        database_.Prepare(
            "DELETE FROM computations WHERE workload_id = ?1 AND workload_key = ?2 AND NOT "
            "EXISTS (SELECT 1 FROM tasks WHERE workload_id = ?1 AND workload_key = ?2) AND NOT "
            "EXISTS (SELECT 1 FROM records WHERE workload = ?1 AND workload_key = ?2)"));
    KILN_RETURN_IF_ERROR(forget.Bind(id, computation.key));
    KILN_RETURN_IF_ERROR(forget.Run());
  }
  return OkStatus();
}

Status SqliteWrites::InsertTasks(std::string_view job_id, std::span<const TaskRow> tasks) {
  for (const TaskRow& given : tasks) {
    KILN_ASSIGN_OR_RETURN(const TaskRow task, TaskOfJob(given, job_id));
    KILN_ASSIGN_OR_RETURN(const RowId dag_id, DagId(task.dag));
    KILN_ASSIGN_OR_RETURN(
        Statement insert,
        database_.Prepare(
            "INSERT INTO tasks (job_id, task_index, workload_key, dag_id, target, weight, "
            "description, flop_count, reference_cost_s, alternative_of, variant, preparation, "
            "network, workload_id, known_job, known_trials) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    KILN_RETURN_IF_ERROR(insert.Bind(
        job_id, task.index, task.workload_key, dag_id, task.target, task.weight, task.description,
        task.flop_count, task.reference_cost_s, task.alternative_of, task.variant, task.preparation,
        task.network, task.workload_id, task.known_job, task.known_trials));
    if (Status status = insert.Run(); !status.ok()) {
      if (status.code() != StatusCode::kAlreadyExists) return status;
      return AlreadyExists("job {} has a task {} already", job_id, task.index);
    }
    KILN_RETURN_IF_ERROR(Know(ComputationOf(task)));
  }
  return OkStatus();
}

StatusOr<uint32_t> SqliteWrites::NextTrial(std::string_view job_id) {
  KILN_RETURN_IF_ERROR(CheckJob(database_, job_id));
  KILN_ASSIGN_OR_RETURN(Statement next,
                        database_.Prepare("SELECT coalesce(max(trial) + 1, 0) FROM records "
                                          "WHERE job_id = ?"));
  KILN_RETURN_IF_ERROR(next.Bind(job_id));
  KILN_RETURN_IF_ERROR(next.Step().status());
  return static_cast<uint32_t>(next.Int(0));
}

Status SqliteWrites::UpdateJob(const JobRow& job) {
  KILN_ASSIGN_OR_RETURN(Statement update,
                        database_.Prepare("UPDATE jobs SET state = ?, message = ?, started_ms = ?, "
                                          "finished_ms = ?, fruitless_runs = ?, paused = ? "
                                          "WHERE id = ?"));
  KILN_RETURN_IF_ERROR(update.Bind(StoredState(job.state), job.message, StoredTime(job.started_ms),
                                   StoredTime(job.finished_ms), job.fruitless_runs,
                                   job.state == JobState::kPaused, job.id));
  return update.Run();
}

Status SqliteWrites::UpdateProgress(std::string_view job_id, const JobProgress& progress) {
  KILN_ASSIGN_OR_RETURN(Statement update,
                        database_.Prepare("UPDATE jobs SET ending = ?, active_s = ? WHERE id = ?"));
  KILN_RETURN_IF_ERROR(
      update.Bind(static_cast<int64_t>(progress.ending), progress.active_s, job_id));
  KILN_RETURN_IF_ERROR(update.Run());
  if (database_.changes() == 0) return NotFound("no job {}", job_id);
  return OkStatus();
}

Status SqliteWrites::EndFruitlessRuns(std::string_view job_id) {
  KILN_ASSIGN_OR_RETURN(Statement update,
                        database_.Prepare("UPDATE jobs SET fruitless_runs = 0 "
                                          "WHERE id = ? AND fruitless_runs != 0"));
  KILN_RETURN_IF_ERROR(update.Bind(job_id));
  return update.Run();
}

Status SqliteWrites::UpdateKnownTask(std::string_view job_id, uint32_t task_index,
                                     std::string_view known_job, uint32_t trials) {
  KILN_ASSIGN_OR_RETURN(Statement update,
                        database_.Prepare("UPDATE tasks SET known_job = ?, known_trials = ? "
                                          "WHERE job_id = ? AND task_index = ?"));
  KILN_RETURN_IF_ERROR(update.Bind(known_job, trials, job_id, task_index));
  KILN_RETURN_IF_ERROR(update.Run());
  if (database_.changes() == 0) return NotFound("no task {} in job {}", task_index, job_id);
  return OkStatus();
}

Status SqliteWrites::UpdateReferenceCost(const ReferenceCost& cost) {
  KILN_ASSIGN_OR_RETURN(Statement update, database_.Prepare("UPDATE tasks SET reference_cost_s = ? "
                                                            "WHERE job_id = ? AND task_index = ?"));
  KILN_RETURN_IF_ERROR(update.Bind(cost.cost_s, cost.job_id, cost.task_index));
  KILN_RETURN_IF_ERROR(update.Run());
  if (database_.changes() == 0) {
    return NotFound("no task {} in job {}", cost.task_index, cost.job_id);
  }
  return OkStatus();
}

Status SqliteWrites::CountImported(const ErrorCounts& added) {
  for (size_t error = 0; error < added.size(); ++error) {
    if (added[error] == 0) continue;
    KILN_ASSIGN_OR_RETURN(Statement add,
                          database_.Prepare("INSERT INTO import_counts VALUES (?, ?) ON CONFLICT "
                                            "(error) DO UPDATE SET trials = trials + ?2"));
    KILN_RETURN_IF_ERROR(add.Bind(static_cast<int64_t>(error), added[error]));
    KILN_RETURN_IF_ERROR(add.Run());
  }
  return OkStatus();
}

StatusOr<SqliteWrites::Inserted> SqliteWrites::InsertOrFind(const Record& record) {
  KILN_RETURN_IF_ERROR(CheckJob(database_, record.job_id));
  const StatusOr<int64_t> inserted = InsertRecord(record, record.job_id, record.trial);
  if (inserted.ok() && record.job_id == kImport) {
    ErrorCounts added{};
    added[static_cast<size_t>(record.error)] = 1;
    KILN_RETURN_IF_ERROR(CountImported(added));
  }
  if (inserted.ok()) return Inserted{*inserted};
  if (inserted.status().code() != StatusCode::kAlreadyExists) return inserted.status();
  KILN_ASSIGN_OR_RETURN(
      const std::optional<Record> there,
      SelectOne(database_, "WHERE job_id = ? AND trial = ?", record.job_id, record.trial));
  if (there.has_value() && SameTrial(*there, record)) return Inserted{there->id, false};
  return inserted.status();
}

Status SqliteWrites::UpdateRemeasurements(const Record& record) {
  KILN_ASSIGN_OR_RETURN(
      Statement update,
      database_.Prepare(
          "UPDATE records SET costs_s = ?1, remeasured_costs_s = ?2, confidence_s = ?3, "
          "error = ?4, message = ?5, mean_cost_s = iif(?4 = 0, ?6, NULL), remeasurements = ?7, "
          "remeasured_run_s = ?8, remeasured_device = ?9, mark = ?10 WHERE id = ?11"));
  KILN_RETURN_IF_ERROR(update.Bind(
      PrintNumbers(record.costs_s), PrintNumbers(record.remeasured_costs_s), record.confidence_s,
      record.error, record.message, Cost(record), record.remeasurements, record.remeasured_run_s,
      record.remeasured_device, record.mark, record.id));
  return update.Run();
}

StatusOr<int64_t> SqliteWrites::MarkRecords(const SlowSpan& span) {
  if (span.runner.empty() || span.reason.empty()) return 0;
  // SQLite uses the index only if the query states the index's condition.
  KILN_ASSIGN_OR_RETURN(
      Statement update,
      database_.Prepare("UPDATE records SET mark = ?1 WHERE runner = ?2 AND runner != '' AND "
                        "timestamp_s BETWEEN ?3 AND ?4 AND mark = '' AND "
                        "remeasured_costs_s = '[]'"));
  KILN_RETURN_IF_ERROR(
      update.Bind(BorrowedText{span.reason}, BorrowedText{span.runner}, span.from_s, span.to_s));
  KILN_RETURN_IF_ERROR(update.Run());
  return database_.changes();
}

StatusOr<int64_t> SqliteWrites::InsertRecord(const Record& record, std::string_view job_id,
                                             uint32_t trial) {
  KILN_ASSIGN_OR_RETURN(const RowId dag_id, DagId(record.dag));
  KILN_ASSIGN_OR_RETURN(const RowId model_id, DeviceModelId(record.device_model));
  KILN_ASSIGN_OR_RETURN(
      Statement insert,
      database_.Prepare(
          "INSERT INTO records (id, job_id, task_index, trial, workload_key, dag_id, target, "
          "hardware, steps, "
          "costs_s, mean_cost_s, error, message, build_s, run_s, timestamp_s, device, builder, "
          "runner, "
          "stopped_early, max_error, flop_count, origin, score, remeasured_costs_s, confidence_s, "
          "times, remeasurements, remeasured_run_s, remeasured_device, workload_id, unchecked, "
          "sampled_outputs, target_host, layout_rewrite_option, input_names, "
          "device_model_id, measured_as, device_state, mark) "
          "VALUES ((SELECT max(highest, coalesce((SELECT max(id) FROM records), 0)) + 1 "
          "FROM deleted_records), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, iif(?11 = 0, "
          "?10, NULL), ?11, "
          "?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, "
          "?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39)"));
  const std::string hardware = PrintNumbers(record.hardware),
                    costs_s = PrintNumbers(record.costs_s),
                    remeasured_costs_s = PrintNumbers(record.remeasured_costs_s),
                    input_names = JsonOf(record.input_names);
  KILN_RETURN_IF_ERROR(insert.Bind(
      BorrowedText{job_id}, record.task_index, trial, BorrowedText{record.workload_key}, dag_id,
      BorrowedText{record.target}, BorrowedText{hardware}, BorrowedText{record.steps},
      BorrowedText{costs_s}, Cost(record), record.error, BorrowedText{record.message},
      record.build_s, record.run_s, record.timestamp_s, BorrowedText{record.device},
      BorrowedText{record.builder}, BorrowedText{record.runner}, record.stopped_early,
      record.max_error, record.flop_count, BorrowedText{record.origin}, record.score,
      BorrowedText{remeasured_costs_s}, record.confidence_s, Blob{record.times},
      record.remeasurements, record.remeasured_run_s, BorrowedText{record.remeasured_device},
      BorrowedText{record.workload_id}, BorrowedText{record.unchecked},
      record.sampled_outputs.value_or(0), BorrowedText{record.target_host},
      record.layout_rewrite_option, BorrowedText{input_names}, model_id,
      BorrowedText{record.measured_as}, Blob{record.device_state}, BorrowedText{record.mark}));
  if (Status status = insert.Run(); !status.ok()) {
    if (status.code() != StatusCode::kAlreadyExists) return status;
    return AlreadyExists("job {} has a record of trial {} already", job_id, trial);
  }
  const int64_t id = database_.last_insert_id();
  KILN_RETURN_IF_ERROR(Know(ComputationOf(record)));
  return id;
}

StatusOr<bool> SqliteWrites::InsertAutotvmRecord(const AutotvmRecord& record) {
  KILN_ASSIGN_OR_RETURN(
      Statement insert,
      database_.Prepare(
          "INSERT INTO autotvm_records (id, target, task, args, kwargs, config_index, code_hash, "
          "entities, costs_s, mean_cost_s, error, all_cost_s, timestamp_s, version, tvm_version) "
          "SELECT (SELECT max(highest_autotvm, coalesce((SELECT max(id) FROM autotvm_records), 0)) "
          "+ 1 FROM deleted_records), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, iif(?10 = 0, ?9, NULL), ?10, "
          "?11, ?12, ?13, ?14 "
          "WHERE NOT EXISTS (SELECT 1 FROM autotvm_records WHERE task = ?2 AND args = ?3 AND "
          "target = ?1 AND timestamp_s = ?12 AND config_index = ?5 AND kwargs = ?4 AND error = "
          "?10)"));
  KILN_RETURN_IF_ERROR(insert.Bind(
      record.target, record.task, record.args, record.kwargs, record.config_index, record.code_hash,
      record.entities, PrintNumbers(record.costs_s), MeanCost(record), record.error,
      record.all_cost_s, record.timestamp_s, record.version, record.tvm_version));
  KILN_RETURN_IF_ERROR(insert.Run());
  return database_.changes() > 0;
}

}  // namespace kiln::store
