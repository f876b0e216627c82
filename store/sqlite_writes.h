// What the SQLite store changes in its tables: one statement or a few each. Within a transaction of
// the writer's connection, whose caller holds its lock; an error leaves it to him to roll back.
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

// The job of what was imported (import_log.h): it has no tasks and was measured elsewhere, and it may
// have millions of records. The index best_of_task leaves them out, and import_counts counts them.
inline constexpr std::string_view kImport = "import";

class SqliteWrites {
 public:
  explicit SqliteWrites(sqlite::Database& database) : database_(database) {}

  // ---- jobs and tasks
  Status UpdateJob(const JobRow& job);
  Status EndFruitlessRuns(std::string_view job_id);
  // AlreadyExists: the job has a task of that index.
  Status InsertTasks(std::string_view job_id, std::span<const TaskRow> tasks);
  Status UpdateReferenceCost(const ReferenceCost& cost);

  // ---- records
  // NotFound: no such job.
  StatusOr<uint32_t> NextTrial(std::string_view job_id);
  // As a trial of that job, which is there, whatever the record says of both. Of kImport the caller
  // counts them, once for many.
  StatusOr<int64_t> InsertRecord(const Record& record, std::string_view job_id, uint32_t trial);
  // Of the job that it names. The id of the same result when it is there already.
  StatusOr<int64_t> InsertOrFind(const Record& record);
  using ErrorCounts = std::array<int64_t, kNumErrorKinds>;
  Status CountImported(const ErrorCounts& added);
  Status UpdateRemeasurements(const Record& record);
  // False: it is there already.
  StatusOr<bool> InsertAutotvmRecord(const AutotvmRecord& record);
  // The numbers of records that were deleted are not given again. False: there is none.
  StatusOr<bool> DeleteRecord(int64_t id);
  StatusOr<bool> DeleteAutotvmRecord(int64_t id);

  // ---- computations
  Status Know(const Computation& computation);
  // What the key was bound to, if that is another computation, is so no more.
  Status Unbind(const Computation& computation);

  // ---- texts that many rows share
  using RowId = std::optional<int64_t>;  // none: of an empty text
  // The row of the text, made if it is not there.
  StatusOr<RowId> DagId(std::string_view dag);
  StatusOr<RowId> DeviceModelId(std::string_view text);

 private:
  // `remove` deletes the row of a number, `keep` notes that the number was one.
  StatusOr<bool> Delete(std::string_view remove, std::string_view keep, int64_t id);
  // `find` selects the id by the key, `insert` takes key and text.
  StatusOr<RowId> FindOrInsert(std::string_view find, std::string_view insert, std::string_view key,
                               std::string_view text);

  sqlite::Database& database_;
};

}  // namespace kiln::store
