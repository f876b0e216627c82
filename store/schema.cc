#include "store/schema.h"

namespace kiln::store {
namespace {

// A REAL that may be NULL is a number that may be NaN.
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

// mean_cost_s is what Cost() says: of a finalist the median of its final readings.
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

// Where a trial's time went.
constexpr const char kVersion3[] = "ALTER TABLE records ADD COLUMN times BLOB NOT NULL DEFAULT x''";

// Tasks that are alternatives of each other, and networks of tasks.
constexpr const char kVersion4[] = R"sql(
ALTER TABLE tasks ADD COLUMN alternative_of INTEGER;
ALTER TABLE tasks ADD COLUMN form TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN preparation TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN network TEXT NOT NULL DEFAULT '';
)sql";

// Of the readings of the best that are taken while the job goes on.
constexpr const char kVersion5[] = R"sql(
ALTER TABLE records ADD COLUMN final_readings INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN final_run_s REAL DEFAULT 0;
ALTER TABLE records ADD COLUMN final_device TEXT NOT NULL DEFAULT '';
)sql";

// Why a check proved little.
constexpr const char kVersion6[] =
    "ALTER TABLE records ADD COLUMN unchecked TEXT NOT NULL DEFAULT ''";

constexpr const char* kMigrations[] = {kVersion1, kVersion2, kVersion3,
                                       kVersion4, kVersion5, kVersion6};

}  // namespace

std::span<const char* const> Migrations() { return kMigrations; }

}  // namespace kiln::store
