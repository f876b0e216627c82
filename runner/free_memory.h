// How much more memory this process may use: what the machine has available, or less where a
// container limits it.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::runner {

// Of the system whose /proc and /sys are below `root`. Page cache that would be given up counts as
// free. What cannot be read is no limit.
int64_t FreeMemoryBytes(const std::string& root = "");

}  // namespace kiln::runner
