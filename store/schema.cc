#include "store/schema.h"

namespace kiln::store {
namespace {

// A REAL column that may be NULL holds a number that may be NaN.
constexpr const char kVersion1[] = R"sql(
CREATE TABLE dags (
  id     INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  text   TEXT NOT NULL
) STRICT;

CREATE TABLE jobs (
  number      INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  name        TEXT NOT NULL,
  user        TEXT NOT NULL,
  priority    INTEGER NOT NULL,
  state       TEXT NOT NULL
              CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
  message     TEXT NOT NULL,
  spec        BLOB NOT NULL,
  created_ms  INTEGER NOT NULL,
  started_ms  INTEGER NOT NULL,
  finished_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX unfinished_jobs ON jobs (number) WHERE state IN ('queued', 'running');

CREATE TABLE tasks (
  job_id           TEXT NOT NULL REFERENCES jobs (id),
  task_index       INTEGER NOT NULL,
  workload_key     TEXT NOT NULL,
  dag_id           INTEGER REFERENCES dags (id),
  target           TEXT NOT NULL,
  weight           REAL,
  description      TEXT NOT NULL,
  flop_count       REAL,
  reference_cost_s REAL,
  PRIMARY KEY (job_id, task_index)
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
  id            INTEGER PRIMARY KEY,
  job_id        TEXT NOT NULL REFERENCES jobs (id),
  task_index    INTEGER NOT NULL,
  trial         INTEGER NOT NULL,
  workload_key  TEXT NOT NULL,
  dag_id        INTEGER REFERENCES dags (id),
  target        TEXT NOT NULL,
  hardware      TEXT NOT NULL,
  steps         TEXT NOT NULL,
  costs_s       TEXT NOT NULL,
  mean_cost_s   REAL,
  error         INTEGER NOT NULL CHECK (error BETWEEN 0 AND 8),
  message       TEXT NOT NULL,
  build_s       REAL,
  run_s         REAL,
  timestamp_s   INTEGER NOT NULL,
  device        TEXT NOT NULL,
  builder       TEXT NOT NULL,
  runner        TEXT NOT NULL,
  stopped_early INTEGER NOT NULL,
  max_error     REAL,
  flop_count    REAL,
  UNIQUE (job_id, trial)
) STRICT;
CREATE INDEX best_of_workload ON records (workload_key, target, stopped_early, mean_cost_s, id)
  WHERE error = 0;
CREATE INDEX best_of_task ON records (job_id, task_index, stopped_early, mean_cost_s, id)
  WHERE error = 0;
CREATE INDEX records_of_workload ON records (workload_key, timestamp_s);
)sql";

// mean_cost_s holds Cost(): of a finalist the median of its final readings.
constexpr const char kVersion2[] = R"sql(
ALTER TABLE records ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN score REAL;
ALTER TABLE records ADD COLUMN final_costs_s TEXT NOT NULL DEFAULT '[]';
ALTER TABLE records ADD COLUMN confidence_s REAL DEFAULT 0;

CREATE TABLE rounds (
  job_id          TEXT NOT NULL REFERENCES jobs (id),
  number          INTEGER NOT NULL,
  task_index      INTEGER NOT NULL,
  elapsed_s       REAL,
  trials          INTEGER NOT NULL,
  total_latency_s REAL,
  best_s          TEXT NOT NULL,
  search_s        REAL,
  report          TEXT NOT NULL,
  PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE scheduler (
  id          TEXT NOT NULL,
  incarnation INTEGER NOT NULL
) STRICT;
)sql";

// Adds how a trial's time was spent.
constexpr const char kVersion3[] = "ALTER TABLE records ADD COLUMN times BLOB NOT NULL DEFAULT x''";

// Adds tasks that are alternatives of each other, and networks of tasks.
constexpr const char kVersion4[] = R"sql(
ALTER TABLE tasks ADD COLUMN alternative_of INTEGER;
ALTER TABLE tasks ADD COLUMN form TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN preparation TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN network TEXT NOT NULL DEFAULT '';
)sql";

// Adds the readings of the best candidates that are taken while the job runs.
constexpr const char kVersion5[] = R"sql(
ALTER TABLE records ADD COLUMN final_readings INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN final_run_s REAL DEFAULT 0;
ALTER TABLE records ADD COLUMN final_device TEXT NOT NULL DEFAULT '';
)sql";

// Adds why a check proved little.
constexpr const char kVersion6[] =
    "ALTER TABLE records ADD COLUMN unchecked TEXT NOT NULL DEFAULT ''";

// Makes the computation a record's identity, and not the key. The texts of `dags` are canonical, so
// their digests are the identities (compiler/dag/workload_id.h), except for texts that speak of
// checks as well.
constexpr const char kVersion7[] = R"sql(
ALTER TABLE tasks ADD COLUMN workload_id TEXT NOT NULL DEFAULT '';
UPDATE tasks SET workload_id =
  coalesce((SELECT digest FROM dags WHERE id = dag_id AND text NOT LIKE '%@range(%'), '');

DROP INDEX best_of_workload;
DROP INDEX records_of_workload;
ALTER TABLE records ADD COLUMN workload_id TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN workload TEXT
  GENERATED ALWAYS AS (iif(workload_id = '', '?' || workload_key, workload_id)) VIRTUAL;
UPDATE records SET workload_id =
  coalesce((SELECT digest FROM dags WHERE id = dag_id AND text NOT LIKE '%@range(%'), '');
CREATE INDEX best_of_workload ON records (workload, target, stopped_early, mean_cost_s, id)
  WHERE error = 0;
CREATE INDEX records_of_workload ON records (workload, timestamp_s);

CREATE TABLE computations (
  workload_key TEXT NOT NULL,
  workload_id  TEXT NOT NULL,
  dag_id       INTEGER REFERENCES dags (id),
  flop_count   REAL,
  PRIMARY KEY (workload_key, workload_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_of_computation ON computations (workload_id);
INSERT INTO computations
  SELECT workload_key, workload_id, min(dag_id), max(flop_count) FROM
    (SELECT workload_key, workload_id, dag_id, flop_count FROM tasks UNION
     SELECT workload_key, workload_id, dag_id, flop_count FROM records)
  WHERE workload_id != '' GROUP BY workload_key, workload_id;

CREATE TABLE deleted_records (highest INTEGER NOT NULL) STRICT;
INSERT INTO deleted_records VALUES (0);
)sql";

// Adds an index of the records with which a task's programs are compared.
constexpr const char kVersion8[] = R"sql(
CREATE INDEX unscheduled_of_task ON records (job_id, task_index, trial)
  WHERE steps = '[]' AND error = 0;
)sql";

// Adds the progress of jobs beyond their records, and the number of outputs that a check compared.
constexpr const char kVersion9[] = R"sql(
ALTER TABLE jobs ADD COLUMN ending INTEGER NOT NULL DEFAULT 0 CHECK (ending BETWEEN 0 AND 5);
ALTER TABLE jobs ADD COLUMN active_s REAL DEFAULT 0;
ALTER TABLE records ADD COLUMN sampled_outputs INTEGER NOT NULL DEFAULT 0;
)sql";

// Adds the number of a job's runs at which the process died.
constexpr const char kVersion10[] =
    "ALTER TABLE jobs ADD COLUMN fruitless_runs INTEGER NOT NULL DEFAULT 0";

// Adds the computation to which a key of imported records is bound, and what lines of a log say
// beside their costs.
constexpr const char kVersion11[] = R"sql(
CREATE TABLE bindings (
  workload_key TEXT PRIMARY KEY,
  workload_id  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE records ADD COLUMN target_host TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN layout_rewrite_option INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN input_names TEXT NOT NULL DEFAULT '[]';
)sql";

// Adds the devices on which records were measured, and the analytic model's constants of devices.
constexpr const char kVersion12[] = R"sql(
CREATE TABLE device_models (
  id   INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
ALTER TABLE records ADD COLUMN device_model_id INTEGER REFERENCES device_models (id);

CREATE TABLE calibrations (
  device             TEXT NOT NULL,
  compute_capability INTEGER NOT NULL,
  constants          TEXT NOT NULL,
  fitted_s           INTEGER NOT NULL,
  report             TEXT NOT NULL,
  PRIMARY KEY (device, compute_capability)
) STRICT, WITHOUT ROWID;
)sql";

// Renames columns and a stage hint to the words of docs/glossary.md.
constexpr const char kVersion13[] = R"sql(
ALTER TABLE tasks RENAME COLUMN form TO variant;
ALTER TABLE records RENAME COLUMN final_costs_s TO remeasured_costs_s;
ALTER TABLE records RENAME COLUMN final_readings TO remeasurements;
ALTER TABLE records RENAME COLUMN final_run_s TO remeasured_run_s;
ALTER TABLE records RENAME COLUMN final_device TO remeasured_device;
UPDATE records SET steps = replace(steps, '"fragments$', '"register_buffering$')
  WHERE instr(steps, '"fragments$') > 0;
)sql";

// Adds records of autotvm: configurations of templates, as its logs have them. Also takes imports
// out of the index of tasks: an import may have millions of records and no tasks, so it would be
// one range of that index, in which each new record changes another page. Counts imports in a
// table, since each list of jobs asks for the counts.
constexpr const char kVersion14[] = R"sql(
CREATE TABLE autotvm_records (
  id           INTEGER PRIMARY KEY,
  target       TEXT NOT NULL,
  task         TEXT NOT NULL,
  args         TEXT NOT NULL,
  kwargs       TEXT NOT NULL,
  config_index INTEGER NOT NULL,
  code_hash    TEXT,
  entities     TEXT NOT NULL,
  costs_s      TEXT NOT NULL,
  mean_cost_s  REAL,
  error        INTEGER NOT NULL CHECK (error BETWEEN 0 AND 8),
  all_cost_s   REAL NOT NULL,
  timestamp_s  REAL NOT NULL,
  version      REAL NOT NULL,
  tvm_version  TEXT
) STRICT;
CREATE INDEX autotvm_records_of_task
  ON autotvm_records (task, args, target, timestamp_s, config_index);

DROP INDEX best_of_task;
CREATE INDEX best_of_task ON records (job_id, task_index, stopped_early, mean_cost_s, id)
  WHERE error = 0 AND job_id != 'import';

CREATE TABLE import_counts (
  error  INTEGER PRIMARY KEY,
  trials INTEGER NOT NULL
) STRICT;
INSERT INTO import_counts SELECT error, count(*) FROM records WHERE job_id = 'import' GROUP BY error;
CREATE TRIGGER import_grows AFTER INSERT ON records WHEN NEW.job_id = 'import' BEGIN
  INSERT INTO import_counts VALUES (NEW.error, 1)
    ON CONFLICT (error) DO UPDATE SET trials = trials + 1;
END;
CREATE TRIGGER import_shrinks AFTER DELETE ON records WHEN OLD.job_id = 'import' BEGIN
  UPDATE import_counts SET trials = trials - 1 WHERE error = OLD.error;
END;
CREATE TRIGGER import_changes AFTER UPDATE OF error ON records WHEN OLD.job_id = 'import' BEGIN
  UPDATE import_counts SET trials = trials - 1 WHERE error = OLD.error;
  INSERT INTO import_counts VALUES (NEW.error, 1)
    ON CONFLICT (error) DO UPDATE SET trials = trials + 1;
END;
)sql";

// Adds trained cost models under names that jobs give, and schedules that are taken before any
// record.
constexpr const char kVersion15[] = R"sql(
CREATE TABLE models (
  name      TEXT PRIMARY KEY,
  created_s INTEGER NOT NULL,
  info      TEXT NOT NULL,
  file      BLOB NOT NULL
) STRICT;

CREATE TABLE pinned_schedules (
  workload_id TEXT NOT NULL,
  target      TEXT NOT NULL,
  steps       TEXT NOT NULL,
  pinned_s    INTEGER NOT NULL,
  PRIMARY KEY (workload_id, target)
) STRICT, WITHOUT ROWID;
)sql";

// Adds the numbers of autotvm's records that are not given again. Drops the trigger that counted
// imports; the importer counts many records at once instead. If a trigger adds to a statement,
// SQLite copies each page that the statement changes into a file, so that it can undo the statement
// alone.
constexpr const char kVersion16[] = R"sql(
ALTER TABLE deleted_records ADD COLUMN highest_autotvm INTEGER NOT NULL DEFAULT 0;
DROP TRIGGER IF EXISTS import_grows;
)sql";

// Adds pauses of jobs, users with their limits and what they have had, and who did what. `trials`
// of a job is how many it may take; 0 = the job is of an earlier schema.
constexpr const char kVersion17[] = R"sql(
ALTER TABLE jobs ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN trials INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_of_user ON jobs (user);

CREATE TABLE users (
  name           TEXT PRIMARY KEY,
  weight         REAL NOT NULL DEFAULT 1,
  trials_per_day INTEGER NOT NULL DEFAULT 0,
  devices        INTEGER NOT NULL DEFAULT 0,
  jobs           INTEGER NOT NULL DEFAULT 0,
  stored_bytes   INTEGER NOT NULL DEFAULT 0,
  device_s       REAL NOT NULL DEFAULT 0,
  used_at_ms     INTEGER NOT NULL DEFAULT 0,
  queue_use      REAL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  id      INTEGER PRIMARY KEY,
  at_ms   INTEGER NOT NULL,
  user    TEXT NOT NULL,
  call    TEXT NOT NULL,
  subject TEXT NOT NULL,
  refused TEXT NOT NULL
) STRICT;
CREATE INDEX audit_of_user ON audit (user, id);
)sql";

// Adds the way of measuring (device/measured_as.h), which is a part of the order of the best. Kiln
// measured on GPUs by graphs and kept the caches warm unless a job asked for cold ones. The bytes
// are flush_cache of MeasureOptions; a specification may have them elsewhere, and then the way is
// not known. Also mends files of the first forms of versions 14 and 16, which lacked the counts of
// imports or counted them twice.
constexpr const char kVersion18[] = R"sql(
ALTER TABLE records ADD COLUMN measured_as TEXT NOT NULL DEFAULT '';
UPDATE records SET measured_as = iif(target LIKE 'cuda%', 'graph/warm/free', 'call/warm/free')
  WHERE device != '' AND (target LIKE 'cuda%' OR target LIKE 'llvm%' OR target LIKE 'null%')
  AND job_id NOT IN (SELECT id FROM jobs WHERE instr(spec, x'2801') > 0);

DROP INDEX best_of_workload;
CREATE INDEX best_of_workload
  ON records (workload, target, measured_as DESC, stopped_early, mean_cost_s, id) WHERE error = 0;
DROP INDEX best_of_task;
CREATE INDEX best_of_task
  ON records (job_id, task_index, measured_as DESC, stopped_early, mean_cost_s, id)
  WHERE error = 0 AND job_id != 'import';

CREATE TABLE IF NOT EXISTS import_counts (
  error  INTEGER PRIMARY KEY,
  trials INTEGER NOT NULL
) STRICT;
DROP TRIGGER IF EXISTS import_grows;
DROP TRIGGER IF EXISTS import_shrinks;
CREATE TRIGGER import_shrinks AFTER DELETE ON records WHEN OLD.job_id = 'import' BEGIN
  UPDATE import_counts SET trials = trials - 1 WHERE error = OLD.error;
END;
DROP TRIGGER IF EXISTS import_changes;
CREATE TRIGGER import_changes AFTER UPDATE OF error ON records WHEN OLD.job_id = 'import' BEGIN
  UPDATE import_counts SET trials = trials - 1 WHERE error = OLD.error;
  INSERT INTO import_counts VALUES (NEW.error, 1)
    ON CONFLICT (error) DO UPDATE SET trials = trials + 1;
END;
DELETE FROM import_counts;
INSERT INTO import_counts SELECT error, count(*) FROM records WHERE job_id = 'import' GROUP BY error;
)sql";

// Adds the state of the device that measured a record, and why its cost is in doubt. The index
// finds the records of a runner and a time.
constexpr const char kVersion19[] = R"sql(
ALTER TABLE records ADD COLUMN device_state BLOB NOT NULL DEFAULT x'';
ALTER TABLE records ADD COLUMN mark TEXT NOT NULL DEFAULT '';
CREATE INDEX records_of_runner ON records (runner, timestamp_s) WHERE runner != '';
)sql";

// Adds the trials of other jobs that count as trials of a task.
constexpr const char kVersion20[] = R"sql(
ALTER TABLE tasks ADD COLUMN known_job TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN known_trials INTEGER NOT NULL DEFAULT 0;
)sql";

// Adds an index that finds the best records of a span of time. It has all that such a query reads,
// so that the query reads no rows.
constexpr const char kVersion21[] = R"sql(
CREATE INDEX best_of_day ON records
  (timestamp_s / 86400, measured_as DESC, stopped_early, mean_cost_s, id, timestamp_s, error)
  WHERE error = 0;
)sql";

// Adds an index that has the records of a job in the order of their ids, which is the order in
// which they came: who follows a job reads what is new, and not the job. It has no more than the
// job, because SQLite adds the id to each entry.
constexpr const char kVersion22[] = "CREATE INDEX records_of_job ON records (job_id)";

constexpr const char* kMigrations[] = {
    kVersion1,  kVersion2,  kVersion3,  kVersion4,  kVersion5,  kVersion6,  kVersion7,  kVersion8,
    kVersion9,  kVersion10, kVersion11, kVersion12, kVersion13, kVersion14, kVersion15, kVersion16,
    kVersion17, kVersion18, kVersion19, kVersion20, kVersion21, kVersion22};

}  // namespace

std::span<const char* const> Migrations() { return kMigrations; }

}  // namespace kiln::store
