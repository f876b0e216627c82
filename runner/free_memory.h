// The memory that this process may still use: the memory that the machine has available, or less if
// a container limits it.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::runner {

// Returns the bytes by the files /proc and /sys below `root`. Page cache that would be given up
// counts as free. Limits that cannot be read count as none.
int64_t FreeMemoryBytes(const std::string& root = "");

}  // namespace kiln::runner
