// Changes of the SQLite store's tables, of one statement or a few each. They run within a
// transaction of the writer's connection, whose lock the caller holds. After an error the caller
// rolls back.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "store/record.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace kiln::store {

// The job of imported records (import_log.h). It has no tasks, was measured elsewhere, and may have
// millions of records. The index best_of_task leaves them out, and import_counts counts them.
inline constexpr std::string_view kImport = "import";

class SqliteWrites {
 public:
  explicit SqliteWrites(sqlite::Database& database) : database_(database) {}

  // ---- jobs and tasks
  Status UpdateJob(const JobRow& job);
  // NotFound: there is no such job.
  Status UpdateProgress(std::string_view job_id, const JobProgress& progress);
  Status EndFruitlessRuns(std::string_view job_id);
  // AlreadyExists: the job has a task of that index.
  Status InsertTasks(std::string_view job_id, std::span<const TaskRow> tasks);
  Status UpdateReferenceCost(const ReferenceCost& cost);
  // NotFound: no such task.
  Status UpdateKnownTask(std::string_view job_id, uint32_t task_index, std::string_view known_job,
                         uint32_t trials);

  // ---- records
  // NotFound: no such job.
  StatusOr<uint32_t> NextTrial(std::string_view job_id);
  // Inserts the record as the given trial of an existing job, whatever the record says of both. For
  // kImport the caller counts the records, once for many.
  StatusOr<int64_t> InsertRecord(const Record& record, std::string_view job_id, uint32_t trial);
  struct Inserted {
    int64_t id = 0;
    bool is_new = true;
  };
  // Inserts the record into the job that it names. Returns the id of the same result if the store
  // has it already.
  StatusOr<Inserted> InsertOrFind(const Record& record);
  using ErrorCounts = std::array<int64_t, kNumErrorKinds>;
  Status CountImported(const ErrorCounts& added);
  Status UpdateRemeasurements(const Record& record);
  // Returns the number of records that were marked.
  StatusOr<int64_t> MarkRecords(const SlowSpan& span);
  // False: the store has the record already.
  StatusOr<bool> InsertAutotvmRecord(const AutotvmRecord& record);
  // Returns false if there is no such record. The number of a deleted record is not given again.
  StatusOr<bool> DeleteRecord(int64_t id);
  StatusOr<bool> DeleteAutotvmRecord(int64_t id);

  // ---- computations
  Status Know(const Computation& computation);
  // Ends the binding of the key to any other computation.
  Status Unbind(const Computation& computation);

  // ---- texts that many rows share
  // None for an empty text.
  using RowId = std::optional<int64_t>;
  // Returns the row of the text. Inserts the row if it is missing.
  StatusOr<RowId> DagId(std::string_view dag);
  StatusOr<RowId> DeviceModelId(std::string_view text);

 private:
  // Runs `remove`, which deletes the row of the number, and `keep`, which notes that the number was
  // used.
  StatusOr<bool> Delete(std::string_view remove, std::string_view keep, int64_t id);
  // Runs `find`, which selects the id by the key, and if need be `insert`, which takes key and
  // text.
  StatusOr<RowId> FindOrInsert(std::string_view find, std::string_view insert, std::string_view key,
                               std::string_view text);

  sqlite::Database& database_;
};

}  // namespace kiln::store
