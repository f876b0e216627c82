// Where the lock of a database stands: one place for all names that a file has.
#pragma once

#include <string>

namespace kiln::store {

// FILE.lock beside the file that `database` names at last, symbolic links followed; of one that is
// not there yet, beside the place that it will have.
std::string LockPath(const std::string& database);

}  // namespace kiln::store
