// Starts a program that goes on when this one, its terminal and its session have ended.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace kiln {

// Starts argv[0], which is a path, in a session of its own, without a terminal and with no
// descriptors but 0 (/dev/null), and 1 and 2, which append to the file `log`. Returns its number.
// The program is a child of this process: until this process ends, nobody but the caller reaps it.
StatusOr<pid_t> StartInBackground(const std::vector<std::string>& argv, const std::string& log);

// Returns whether the child has ended, and reaps it then.
bool BackgroundEnded(pid_t child);

}  // namespace kiln
