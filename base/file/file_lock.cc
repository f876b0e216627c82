#include "base/file/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "base/errno_status.h"

namespace kiln {
namespace {

constexpr absl::Duration kPollEvery = absl::Milliseconds(10);

}  // namespace

StatusOr<FileLock> FileLock::Acquire(const std::string& path, absl::Duration patience,
                                     Clock& clock) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return ErrnoStatus(errno, "cannot open {}", path);
  return Lock(std::move(file), path, patience, clock);
}

StatusOr<FileLock> FileLock::AcquireFolder(const std::string& path, absl::Duration patience,
                                           Clock& clock) {
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return ErrnoStatus(errno, "cannot open the folder {}", path);
  return Lock(std::move(folder), path, patience, clock);
}

StatusOr<FileLock> FileLock::Lock(UniqueFd file, const std::string& path, absl::Duration patience,
                                  Clock& clock) {
  const double end = clock.MonotonicSeconds() + absl::ToDoubleSeconds(patience);
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "cannot lock {}", path);
    if (clock.MonotonicSeconds() >= end) {
      return Unavailable("another process has kept the lock {} for {}; wait until it has ended",
                         path, absl::FormatDuration(patience));
    }
    clock.SleepFor(kPollEvery);
  }
  return FileLock(std::move(file));
}

}  // namespace kiln
