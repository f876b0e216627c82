#include "store/sqlite_rows.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/json/json_cursor.h"
#include "base/text/utf8.h"

namespace kiln::store {
namespace {

using sqlite::Database;
using sqlite::Statement;

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

// Parses a list such as ["a", "b"].
StatusOr<std::vector<std::string>> ParseTexts(std::string_view text, std::string_view column) {
  std::vector<std::string> texts;
  JsonCursor json(text);
  const Status list = json.Array("a list of texts", [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(texts.emplace_back(), json.String("a text"));
    return OkStatus();
  });
  if (list.ok() && json.ExpectEnd().ok()) return texts;
  return DataLoss("column {} holds '{}', expected a list of texts", column, text);
}

// Returns the text as UTF-8. Bytes of older files that are no UTF-8 would spoil every message that
// they get into.
std::string TextOf(const Statement& row, int column) {
  std::string text = row.Text(column);
  const bool ascii = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return ascii ? text : ValidUtf8(text);
}

std::optional<int64_t> UnlessZero(int64_t stored) {
  return stored == 0 ? std::nullopt : std::optional(stored);
}

}  // namespace

std::string PrintCosts(const std::vector<std::optional<double>>& costs_s) {
  std::vector<double> stored;
  for (const std::optional<double>& cost_s : costs_s) stored.push_back(cost_s.value_or(0));
  return PrintNumbers(stored);
}

std::string JsonOf(const std::vector<std::string>& names) {
  std::string json = "[";
  for (const std::string& name : names) {
    json += json.size() > 1 ? "," : "";
    json += JsonQuote(name);
  }
  return json + "]";
}

// ---- rows -----------------------------------------------------------------------------------

const char kJobColumns[] =
    "SELECT id, name, user, priority, state, message, spec, created_ms, started_ms, finished_ms, "
    "ending, active_s, fruitless_runs, trials, paused FROM jobs ";

StatusOr<JobRow> ReadJob(const Statement& row) {
  JobRow job;
  job.id = TextOf(row, 0);
  job.name = TextOf(row, 1);
  job.user = TextOf(row, 2);
  job.priority = static_cast<int32_t>(row.Int(3));
  job.message = TextOf(row, 5);
  const StatusOr<JobState> state = ParseJobState(row.Text(4));
  // Somebody else wrote the state: the job is shown, and does not run.
  if (!state.ok()) job.message = Message(state.status());
  job.state = state.ok() ? *state : JobState::kFailed;
  job.spec = row.Text(6);
  job.created_ms = row.Int(7);
  job.started_ms = UnlessZero(row.Int(8));
  job.finished_ms = UnlessZero(row.Int(9));
  job.progress.ending = static_cast<JobEnding>(row.Int(10));
  job.progress.active_s = row.Double(11);
  job.fruitless_runs = static_cast<int32_t>(row.Int(12));
  job.trials = static_cast<uint32_t>(row.Int(13));
  if (job.state == JobState::kQueued && row.Int(14) != 0) job.state = JobState::kPaused;
  return job;
}

std::string_view StoredState(JobState state) {
  return JobStateName(state == JobState::kPaused ? JobState::kQueued : state);
}

const char kUserColumns[] =
    "SELECT name, weight, trials_per_day, devices, jobs, stored_bytes, device_s, used_at_ms, "
    "queue_use FROM users ";

StatusOr<UserRow> ReadUser(const Statement& row) {
  UserRow user;
  user.use.name = TextOf(row, 0);
  user.limits.weight = row.Double(1);
  user.limits.trials_per_day = static_cast<uint64_t>(row.Int(2));
  user.limits.devices = static_cast<uint32_t>(row.Int(3));
  user.limits.jobs = static_cast<uint32_t>(row.Int(4));
  user.limits.stored_bytes = static_cast<uint64_t>(row.Int(5));
  user.use.device_s = row.Double(6);
  user.use.at_ms = row.Int(7);
  if (!row.IsNull(8)) user.use.queue_use = row.Double(8);
  return user;
}

const char kAuditColumns[] = "SELECT id, at_ms, user, call, subject, refused FROM audit ";

StatusOr<AuditRow> ReadAudit(const Statement& row) {
  return AuditRow{.id = row.Int(0),
                  .at_ms = row.Int(1),
                  .user = TextOf(row, 2),
                  .call = TextOf(row, 3),
                  .subject = TextOf(row, 4),
                  .refused = TextOf(row, 5)};
}

const char kTaskColumns[] =
    "SELECT job_id, task_index, workload_key, d.text, target, weight, description, flop_count, "
    "reference_cost_s, alternative_of, variant, preparation, network, workload_id, known_job, "
    "known_trials "
    "FROM tasks t LEFT JOIN dags d ON d.id = t.dag_id ";

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
  if (const double cost_s = row.Double(8); cost_s > 0) task.reference_cost_s = cost_s;
  if (!row.IsNull(9)) task.alternative_of = static_cast<uint32_t>(row.Int(9));
  task.variant = TextOf(row, 10);
  task.preparation = TextOf(row, 11);
  task.network = TextOf(row, 12);
  task.workload_id = TextOf(row, 13);
  task.known_job = TextOf(row, 14);
  task.known_trials = static_cast<uint32_t>(row.Int(15));
  return task;
}

StatusOr<int> ErrorKindOf(int64_t stored, std::string_view job_id) {
  if (stored >= 0 && stored < kNumErrorKinds) return static_cast<int>(stored);
  return DataLoss("a record of job {} has the error kind {}, expected 0 to {}", job_id, stored,
                  kNumErrorKinds - 1);
}

const char kRecordColumns[] =
    "SELECT r.id, job_id, task_index, trial, workload_key, d.text, target, hardware, steps, "
    "costs_s, "
    "error, message, build_s, run_s, timestamp_s, device, builder, runner, stopped_early, "
    "max_error, flop_count, origin, score, remeasured_costs_s, confidence_s, times, "
    "remeasurements, "
    "remeasured_run_s, remeasured_device, workload_id, unchecked, sampled_outputs, target_host, "
    "layout_rewrite_option, input_names, m.text, measured_as, device_state, mark "
    "FROM records r LEFT JOIN dags d ON d.id = r.dag_id "
    "LEFT JOIN device_models m ON m.id = r.device_model_id ";

const char kRivalColumns[] =
    "SELECT measured_as, stopped_early, mean_cost_s, r.id, confidence_s, device FROM records r ";

StatusOr<Rival> ReadRival(const Statement& row) {
  // A file that somebody else wrote to may lack a cost: such a row stands first in the index.
  const double cost_s = row.IsNull(2) ? -std::numeric_limits<double>::infinity() : row.Double(2);
  return Rival{.rank = {.measured_as = row.Text(0),
                        .stopped_early = row.Int(1) != 0,
                        .cost_s = cost_s,
                        .id = row.Int(3)},
               .confidence_s = row.Double(4),
               .device = row.Text(5)};
}

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
  if (!row.IsNull(22)) record.score = row.Double(22);
  KILN_ASSIGN_OR_RETURN(record.remeasured_costs_s,
                        ParseNumbers<double>(row.Text(23), "remeasured_costs_s"));
  if (const double s = row.Double(24); s > 0) record.confidence_s = s;
  record.times = row.Text(25);
  // Older rows do not have the number: then each value stands for itself.
  const auto values = static_cast<int64_t>(record.remeasured_costs_s.size());
  record.remeasurements = static_cast<uint32_t>(UnlessZero(row.Int(26)).value_or(values));
  record.remeasured_run_s = row.Double(27);
  record.remeasured_device = TextOf(row, 28);
  record.workload_id = TextOf(row, 29);
  record.unchecked = TextOf(row, 30);
  record.sampled_outputs = UnlessZero(row.Int(31));
  record.target_host = TextOf(row, 32);
  record.layout_rewrite_option = row.Int(33);
  KILN_ASSIGN_OR_RETURN(record.input_names, ParseTexts(TextOf(row, 34), "input_names"));
  record.device_model = TextOf(row, 35);
  record.measured_as = TextOf(row, 36);
  record.device_state = row.Text(37);
  record.mark = TextOf(row, 38);
  return record;
}

const char kRoundColumns[] =
    "SELECT job_id, number, task_index, elapsed_s, trials, total_latency_s, best_s, search_s, "
    "report FROM rounds ";

StatusOr<RoundRow> ReadRound(const Statement& row) {
  RoundRow round;
  round.job_id = TextOf(row, 0);
  round.number = static_cast<uint32_t>(row.Int(1));
  round.task_index = static_cast<uint32_t>(row.Int(2));
  round.elapsed_s = row.Double(3);
  round.trials = static_cast<uint32_t>(row.Int(4));
  if (!row.IsNull(5)) round.total_latency_s = row.Double(5);
  KILN_ASSIGN_OR_RETURN(const std::vector<double> best_s,
                        ParseNumbers<double>(row.Text(6), "best_s"));
  for (const double s : best_s) round.best_s.push_back(s > 0 ? std::optional(s) : std::nullopt);
  round.search_s = row.Double(7);
  round.report = TextOf(row, 8);
  return round;
}

const char kCalibrationColumns[] =
    "SELECT device, compute_capability, constants, fitted_s, report FROM calibrations ";

StatusOr<CalibrationRow> ReadCalibration(const Statement& row) {
  return CalibrationRow{.device = TextOf(row, 0),
                        .compute_capability = static_cast<int32_t>(row.Int(1)),
                        .constants = TextOf(row, 2),
                        .fitted_s = row.Int(3),
                        .report = TextOf(row, 4)};
}

const char kModelColumns[] = "SELECT name, created_s, length(file), info FROM models ";

StatusOr<ModelRow> ReadModel(const Statement& row) {
  return ModelRow{
      .name = TextOf(row, 0), .created_s = row.Int(1), .bytes = row.Int(2), .info = TextOf(row, 3)};
}

const char kPinnedColumns[] = "SELECT workload_id, target, steps, pinned_s FROM pinned_schedules ";

StatusOr<PinnedSchedule> ReadPinned(const Statement& row) {
  return PinnedSchedule{.workload_id = TextOf(row, 0),
                        .target = TextOf(row, 1),
                        .steps = TextOf(row, 2),
                        .pinned_s = row.Int(3)};
}

StatusOr<std::string> ReadText(const Statement& row) { return TextOf(row, 0); }

const char kComputationColumns[] =
    "SELECT workload_id, workload_key, text, flop_count FROM computations "
    "LEFT JOIN dags ON id = dag_id ";

StatusOr<Computation> ReadComputation(const Statement& row) {
  return Computation{
      .id = row.Text(0), .key = row.Text(1), .dag = row.Text(2), .flop_count = row.Double(3)};
}

const char kAutotvmColumns[] =
    "SELECT id, target, task, args, kwargs, config_index, code_hash, entities, costs_s, error, "
    "all_cost_s, timestamp_s, version, tvm_version FROM autotvm_records ";

StatusOr<AutotvmRecord> ReadAutotvmRecord(const Statement& row) {
  const auto text_or_none = [&](int column) {
    return row.IsNull(column) ? std::nullopt : std::optional(TextOf(row, column));
  };
  AutotvmRecord record;
  record.id = row.Int(0);
  record.target = TextOf(row, 1);
  record.task = TextOf(row, 2);
  record.args = TextOf(row, 3);
  record.kwargs = TextOf(row, 4);
  record.config_index = row.Int(5);
  record.code_hash = text_or_none(6);
  record.entities = TextOf(row, 7);
  KILN_ASSIGN_OR_RETURN(record.costs_s, ParseNumbers<double>(row.Text(8), "costs_s"));
  KILN_ASSIGN_OR_RETURN(record.error, ErrorKindOf(row.Int(9), "of autotvm"));
  record.all_cost_s = row.Double(10);
  record.timestamp_s = row.Double(11);
  record.version = row.Double(12);
  record.tvm_version = text_or_none(13);
  return record;
}

// ---- selecting ------------------------------------------------------------------------------

Status CheckJob(Database& database, std::string_view job_id) {
  KILN_ASSIGN_OR_RETURN(Statement query, database.Prepare("SELECT 1 FROM jobs WHERE id = ?"));
  KILN_RETURN_IF_ERROR(query.Bind(job_id));
  KILN_ASSIGN_OR_RETURN(const bool found, query.Step());
  return found ? OkStatus() : NotFound("no job {}", job_id);
}

StatusOr<JobRow> FindJob(Database& database, std::string_view job_id) {
  KILN_ASSIGN_OR_RETURN(std::vector<JobRow> jobs,
                        Select<JobRow>(database, ReadJob, kJobColumns, "WHERE id = ?", job_id));
  if (jobs.empty()) return NotFound("no job {}", job_id);
  return std::move(jobs.front());
}

}  // namespace kiln::store
