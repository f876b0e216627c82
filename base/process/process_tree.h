// The processes that a process has started, and whether they are still there. Linux, by /proc.
#pragma once

#include <sys/types.h>

#include <vector>

namespace kiln {

// Returns the direct children of all threads. Empty if the process is gone.
std::vector<pid_t> ChildrenOf(pid_t pid);

// True also for a process that nobody has reaped yet.
bool HasEnded(pid_t pid);

// Returns the first stopped process among this process and its descendants; 0: none is stopped.
// SIGSTOP or a terminal stops a process. A traced process does not count.
pid_t FindStopped(pid_t pid);

}  // namespace kiln
