// Keeps a second scheduler off a database: a lock file beside it, FILE.lock, with the pid of its
// holder, whatever name the database is called by (store/lock_path.h). The lock goes with the
// process, however it ends; a file that is left behind is harmless.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace kiln::scheduler {

class DatabaseLock {
 public:
  // FailedPrecondition "kiln.db is in use by process 123, ...".
  static StatusOr<DatabaseLock> Take(const std::string& database);

  DatabaseLock(DatabaseLock&&) noexcept = default;
  // Removes the file.
  ~DatabaseLock();

 private:
  DatabaseLock(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  UniqueFd file_;  // invalid: moved from
};

}  // namespace kiln::scheduler
