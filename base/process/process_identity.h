// Names a process so that no other one can be meant: a number alone is given to a new process once
// the old one has ended. Linux, by /proc.
//
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace kiln {

struct ProcessIdentity {
  // 0: no process.
  pid_t pid = 0;
  // Time at which the process was started, in clock ticks since the machine began.
  int64_t start_ticks = 0;
  // Names the time since the machine began: /proc/sys/kernel/random/boot_id.
  std::string boot_id;

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// Parses the text of /proc/PID/stat, in which the name of the program may hold anything. Returns
// the start in ticks; NotFound if the process has ended and only waits for its parent.
StatusOr<int64_t> ParseStartTicks(std::string_view proc_pid_stat);

// NotFound if there is no such process.
StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid);

// Returns whether the process still runs.
bool IsRunning(const ProcessIdentity& process);

// Sends a signal to the process and to no other: it is held by a descriptor while its start is
// compared. NotFound if the process has ended. Unavailable if the kernel or a sandbox has no
// descriptors of processes.
Status SignalProcess(const ProcessIdentity& process, int signal);

}  // namespace kiln
