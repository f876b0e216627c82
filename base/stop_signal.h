// Waits for SIGTERM, SIGINT or SIGHUP (a terminal that is closed; not under nohup), so that a
// daemon stops in order.
//
//   int main() {
//     StopSignal stop;          // first of all, before any thread is started: threads inherit the
//     blocked mask
//     ... start ...
//     stop.Wait();
//     ... stop ...
//   }
//
// Once the first signal has been waited for, the signals have their default action again: a second
// Ctrl-C ends a daemon that is slow to stop. Also ignores SIGPIPE and SIGXFSZ for the process. At
// most one at a time. Children started by base/subprocess.h are not affected.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "base/fd.h"

namespace kiln {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The signal number, or 0 when it was Trigger. Wait
  // and WaitFor are called by the thread that made this.
  int Wait();
  // Nothing after `timeout`.
  std::optional<int> WaitFor(absl::Duration timeout);

  // Ends the wait from within; by any thread.
  void Trigger();

 private:
  UniqueFd signal_fd_, trigger_fd_;
};

}  // namespace kiln
