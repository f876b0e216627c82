// The path of a database's lock file. All names of one file lead to the same lock.
#pragma once

#include <string>

namespace kiln::store {

// Returns FILE.lock beside the file that `database` finally names, after following symbolic links.
// If the file does not exist yet, the lock stands beside its future place.
std::string LockPath(const std::string& database);

}  // namespace kiln::store
