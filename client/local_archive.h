// Reads the records of a database file without a scheduler. A scheduler may use the file meanwhile.
#pragma once

#include <memory>
#include <string>

#include "client/archive.h"

namespace kiln::client {

// The file must exist unless `write`, which makes it: "no database at kiln.db: ...". `write` allows
// calls that write, such as Import.
StatusOr<std::unique_ptr<Archive>> OpenLocalArchive(const std::string& path, bool write = false);

// The job of trials that were measured without a job: schedules that people wrote.
inline constexpr char kScheduleJob[] = "schedules";

// Adds the record, which has its computation and its result, as the next trial of kScheduleJob.
// Makes the database if it does not exist; a scheduler may work on it meanwhile. Returns the stored
// record, with its number. A cost that no device can have is refused.
StatusOr<v1::Record> KeepTrial(const std::string& path, const v1::Record& record);

// Deletes the entries of the audit from before `before_ms`, Unix time, or only counts them. Returns
// their number. A scheduler may work on the file meanwhile.
StatusOr<int64_t> PruneAudit(const std::string& path, int64_t before_ms, bool only_count);

// Makes the database if it does not exist. Refuses a file that is no database of Kiln and a
// database that a scheduler works on. The embedded scheduler would write the same errors into its
// log; here they are returned at once.
Status CheckDatabase(const std::string& path);

// Cancels a job of a database that no scheduler works on.
Status CancelInDatabase(const std::string& path, const std::string& job_id);

}  // namespace kiln::client
