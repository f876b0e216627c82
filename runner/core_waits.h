// How long the threads of a process computed, and how long they waited for a core, by the counts
// that the system keeps for each thread (/proc/PID/task/TID/schedstat). No code of the process has
// a part in them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

namespace kiln::runner {

// Counts of one thread since its start.
struct ThreadCounts {
  int64_t computed_ns = 0;
  // Time in which it could have run and had no core.
  int64_t waited_ns = 0;
};
// Counts of threads by their ids.
using CoreCounts = std::map<pid_t, ThreadCounts>;

// Reads the counts of all threads of a process, in some 10 us for each. Nothing if the system does
// not tell them.
std::optional<CoreCounts> ReadCoreCounts(pid_t process);
// Reads those of the calling thread.
std::optional<ThreadCounts> ReadOwnCounts();

// Use of cores by threads between two readings of their counts.
struct CoreUse {
  // Seconds that the thread which computed most did so.
  double longest_s = 0;
  // Seconds that all threads together waited for a core.
  double waited_s = 0;
};
// Threads that only one of the readings has do not count.
CoreUse UseBetween(const CoreCounts& before, const CoreCounts& after);

}  // namespace kiln::runner
