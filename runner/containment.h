// Restrictions of a process that runs foreign code. They hold for good. Linux.
//
// A process is restricted in three steps: the first before it starts threads, the second before it
// loads the program, the third, by another process, when the program is loaded. The steps restrict
// what a program can do with the system calls that it keeps. They do not stop code that escapes
// through a bug of the kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace kiln::runner {

struct ContainmentOptions {
  // If this process is root, it becomes a user who owns nothing.
  bool drop_privileges = true;
  // CPU time of all threads; then the process is killed.
  int64_t cpu_s = 24 * 3600;
  // Bytes that the process may write into a file, which limits its output.
  int64_t output_bytes = 16 << 20;
};

// Returns the lines of the table (base/process/containment_table.h) that this machine and user do
// not offer for CPU programs, and why, for people. Empty: nothing is missing.
std::string MissingContainment(const ContainmentOptions& options);

// The first step, in a process of one thread. The process keeps no descriptors but 0, 1, 2 and
// `kept`. It gets no new privileges and no core file, and the limits apply. It becomes another user
// and has no capabilities. It can read no files but the libraries of the system
// (base/process/file_access.h). It ends with its parent, the thread that forked it. `extra_bytes`
// is its address space beside what it has now. On an error the process must not run foreign code.
Status Confine(const ContainmentOptions& options, std::span<const int> kept, int64_t extra_bytes);

// The second step, for all threads at once. The process can start no processes or threads, open
// files only for reading (which loading a program needs), use no sockets, and send no signals to
// others. The only other calls that it may make are for memory, threads, time and open descriptors.
// Refused calls fail with EPERM. On an error the process must not run foreign code.
Status ForbidSystemCalls();

// The third step, which the process's parent takes, because the process itself may run a stranger's
// code by now. The process gets no further descriptors of any kind.
Status ForbidOpening(pid_t pid);

// From now on descendants that lose their parent become children of this process, which is expected
// to end them. Descendants of the same user cannot look into this process.
void AdoptOrphans();

// Kills and reaps all children of this process, also unknown ones, if it adopts orphans. For a
// process that has no child that it wants to keep.
void EndOrphans();

}  // namespace kiln::runner
