#include "scheduler/database_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_status.h"
#include "store/lock_path.h"

namespace kiln::scheduler {
namespace {

std::string ReadPid(int fd) {
  char text[32];
  const ssize_t size = pread(fd, text, sizeof(text), 0);
  std::string pid(text, size > 0 ? static_cast<size_t>(size) : 0);
  while (!pid.empty() && pid.back() == '\n') pid.pop_back();
  return pid.empty() ? "unknown" : pid;
}

// Tells whether `path` still names the locked file. The holder removes the file before it lets go,
// so a file that we have just locked may have no name any more.
bool StillThere(int fd, const std::string& path) {
  struct stat ours, named;
  return fstat(fd, &ours) == 0 && stat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

}  // namespace

StatusOr<DatabaseLock> DatabaseLock::Take(const std::string& database) {
  const std::string path = store::LockPath(database);
  while (true) {
    UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file.valid()) {
      const int error = errno;
      if (error == ENOENT) {
        return NotFound(
            "the folder of the database {} is not there; make it with `mkdir -p`, or choose "
            "another "
            "file with --db",
            database);
      }
      return ErrnoStatus(error, "cannot lock the database {}: cannot open {}", database, path);
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (error != EWOULDBLOCK) return ErrnoStatus(error, "cannot lock {}", path);
      return FailedPrecondition(
          "the database {} is in use by the scheduler with process id {}; its clients share it "
          "with --scheduler HOST:PORT; else stop it, or choose another file with --db",
          database, ReadPid(file.get()));
    }
    if (!StillThere(file.get(), path)) continue;
    const std::string pid = fmt::format("{}\n", getpid());
    if (ftruncate(file.get(), 0) != 0 ||
        pwrite(file.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
      const int error = errno;
      return ErrnoStatus(error, "cannot write {}", path);
    }
    return DatabaseLock(path, std::move(file));
  }
}

DatabaseLock::~DatabaseLock() {
  if (file_.valid()) unlink(path_.c_str());
}

}  // namespace kiln::scheduler
