// A lock that processes of one machine share, by a file.
#pragma once

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/fd.h"
#include "base/status.h"

namespace kiln {

// Holds the lock until it is destroyed, or until the process ends in whatever way. The file stays.
class FileLock {
 public:
  // Makes the file, with mode 0600, if there is none. Unavailable if another holder keeps the lock
  // for longer than `patience`, measured by `clock`.
  static StatusOr<FileLock> Acquire(const std::string& path, absl::Duration patience, Clock& clock);
  // Locks a folder that exists, by the folder itself: no file is made in it.
  static StatusOr<FileLock> AcquireFolder(const std::string& path, absl::Duration patience,
                                          Clock& clock);

 private:
  static StatusOr<FileLock> Lock(UniqueFd file, const std::string& path, absl::Duration patience,
                                 Clock& clock);

  explicit FileLock(UniqueFd file) : file_(std::move(file)) {}

  UniqueFd file_;
};

}  // namespace kiln
