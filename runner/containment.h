// What a process that runs foreign code gives up before it does, for good. Linux.
//
// In three steps: the first before it starts threads, the second before it loads the program, the
// third, by another process, when that is loaded. None stops code that works its way out through a bug of the kernel; they stop what a program
// can do with the system calls that it is let have.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace kiln::runner {

struct ContainmentOptions {
  // Where this process is root: become a user who owns nothing.
  bool drop_privileges = true;
  int64_t cpu_s = 24 * 3600;        // of all its threads; then it is killed
  int64_t output_bytes = 16 << 20;  // that it may write into a file, which is what it prints
};

// Which lines of the table (base/containment_table.h) this machine and user do not offer for CPU
// programs, and why, for people; empty: all is there.
std::string MissingContainment(const ContainmentOptions& options);

// The first step, in a process of one thread: no descriptors but 0, 1, 2 and `kept`; no new
// privileges, no core file, the limits; another user, no capabilities; of files only the libraries
// of the system, to read (base/file_access.h); and it ends with its parent (the thread that forked
// it). extra_bytes: of address space, beside what it has now. On an error
// it must not run foreign code.
Status Confine(const ContainmentOptions& options, std::span<const int> kept, int64_t extra_bytes);

// The second step, for all threads at once: no new processes or threads, no opening of files but
// for reading (which loading a program needs), no sockets, no signals to others, no other calls
// than those of memory, threads, time and of descriptors that are open. What is refused fails with
// EPERM. On an error it must not run foreign code.
Status ForbidSystemCalls();

// The third step, by the process's parent, since its own code may be a stranger's by now: it gets no
// further descriptor, whatever of.
Status ForbidOpening(pid_t pid);

// From now on descendants that lose their parent become children of this process, who is to end
// them; and those of the same user cannot look into this process.
void AdoptOrphans();

// Kills and reaps all children of this process, strangers included, if it adopts orphans. For a
// process that has no child that it wants to keep.
void EndOrphans();

}  // namespace kiln::runner
