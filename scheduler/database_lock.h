// Keeps a second scheduler off a database. The lock file FILE.lock lies beside the database and
// holds the pid of its holder. All names of one database lead to one lock file (store/lock_path.h).
// The lock ends with the process, however the process ends; a lock file that is left behind is
// harmless.
#pragma once

#include <memory>
#include <string>

#include "base/file/fd.h"
#include "base/status.h"

namespace kiln::scheduler {

class DatabaseLock {
 public:
  // Fails with FailedPrecondition "kiln.db is in use by process 123, ...".
  static StatusOr<DatabaseLock> Take(const std::string& database);

  DatabaseLock(DatabaseLock&&) noexcept = default;
  // Removes the lock file.
  ~DatabaseLock();

 private:
  DatabaseLock(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  UniqueFd file_;  // invalid in an object that was moved from
};

}  // namespace kiln::scheduler
