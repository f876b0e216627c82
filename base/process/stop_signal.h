// Waits for SIGTERM, SIGINT or SIGHUP, so that a daemon stops in order. SIGHUP comes from a
// terminal that is closed; it is ignored under nohup.
//
//   int main() {
//     // First of all, before any thread is started: threads inherit the blocked mask.
//     StopSignal stop;
//     ... start ...
//     stop.Wait();
//     ... stop ...
//   }
//
// Once the first signal has been waited for, the signals have their default action again: a second
// Ctrl-C ends a daemon that is slow to stop. The class also ignores SIGPIPE and SIGXFSZ for the
// process. There is at most one object at a time. Children started by base/process/subprocess.h are
// not affected.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "base/file/fd.h"

namespace kiln {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Returns the signal number, or 0 after Trigger. The thread that made the object calls Wait and
  // WaitFor.
  int Wait();
  // Returns nothing after `timeout`.
  std::optional<int> WaitFor(absl::Duration timeout);

  // Ends the wait from within the process. Any thread may call it.
  void Trigger();

 private:
  UniqueFd signal_fd_, trigger_fd_;
};

}  // namespace kiln
