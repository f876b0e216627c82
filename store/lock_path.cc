#include "store/lock_path.h"

#include <filesystem>
#include <system_error>

namespace kiln::store {

std::string LockPath(const std::string& database) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = database;
  // SQLite makes the file that a dangling link names, so such a link is followed too.
  for (int links = 0; links < 40 && fs::is_symlink(path, error); ++links) {
    const fs::path named = fs::read_symlink(path, error);
    if (error) break;
    path = named.is_absolute() ? named : path.parent_path() / named;
  }
  const fs::path resolved = fs::weakly_canonical(path, error);
  return (error ? path : resolved).string() + ".lock";
}

}  // namespace kiln::store
