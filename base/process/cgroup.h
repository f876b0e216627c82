// Limits of a group of processes together: memory and number of processes, by version 2 of Linux's
// control groups. They need a part of the tree that is delegated to this process, for instance by
// systemd's Delegate=yes, or a container with a tree of its own.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace kiln {

struct GroupLimits {
  int64_t memory_bytes = 0;
  int64_t processes = 0;
};

// Makes a group for children of this process below its own group, with limits and without swap, and
// returns its folder, for JoinGroup. The name is "children-PROGRAM-PID", so that daemons in one
// group share no limits. A second call of a process sets the limits anew.
//
// This process itself moves into the group "daemon" beside it, because a group with limits for
// others must have no processes. It is where it was before if the call fails. The groups stay;
// groups of daemons that are gone are removed. FailedPrecondition says what is missing. `root` is
// the folder of the file system, and `own` the file that names this process's group, which tests
// replace.
StatusOr<std::string> MakeChildGroup(const GroupLimits& limits,
                                     const std::string& root = "/sys/fs/cgroup",
                                     const std::string& own = "/proc/self/cgroup");

// Moves the calling process, and all that it starts, into a group.
Status JoinGroup(const std::string& folder);

}  // namespace kiln
