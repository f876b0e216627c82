// Who a process has started, and whether it is still there. Linux, by /proc.
#pragma once

#include <sys/types.h>

#include <vector>

namespace kiln {

// Direct children, of all its threads. Empty when it is gone.
std::vector<pid_t> ChildrenOf(pid_t pid);

// Also of one that nobody has reaped yet.
bool HasEnded(pid_t pid);

// The first of this process and all that it and they have started that is stopped, by SIGSTOP or a
// terminal; 0: none is. A process that is traced does not count.
pid_t FindStopped(pid_t pid);

}  // namespace kiln
