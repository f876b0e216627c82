// The records in a database file, read without a scheduler; one may use the file meanwhile.
#pragma once

#include <memory>
#include <string>

#include "client/archive.h"

namespace kiln::client {

// The file must be there: "no database at kiln.db: ...". `write`: Import will be called.
StatusOr<std::unique_ptr<Archive>> OpenLocalArchive(const std::string& path, bool write = false);

// Makes the database if it is not there, and refuses what is no database of ours and one that a
// scheduler works on: what the embedded scheduler would say in its log, said at once.
Status CheckDatabase(const std::string& path);

// Cancels a job of a database that no scheduler works on.
Status CancelInDatabase(const std::string& path, const std::string& job_id);

}  // namespace kiln::client
