// The records in a database file, read without a scheduler; one may use the file meanwhile.
#pragma once

#include <memory>
#include <string>

#include "client/archive.h"

namespace kiln::client {

// The file must be there: "no database at kiln.db: ...". `write`: Import will be called.
StatusOr<std::unique_ptr<Archive>> OpenLocalArchive(const std::string& path, bool write = false);

// The job of trials that were measured without one: schedules that people wrote.
inline constexpr char kScheduleJob[] = "schedules";

// Keeps the record, which has its computation and its result, as the next trial of that job, and
// makes the database if it is not there. A scheduler may work on it meanwhile. Returns the record as
// it is kept, with its number. Refused: a cost that no device can have.
StatusOr<v1::Record> KeepTrial(const std::string& path, const v1::Record& record);

// Makes the database if it is not there, and refuses what is no database of ours and one that a
// scheduler works on: what the embedded scheduler would say in its log, said at once.
Status CheckDatabase(const std::string& path);

// Cancels a job of a database that no scheduler works on.
Status CancelInDatabase(const std::string& path, const std::string& job_id);

}  // namespace kiln::client
