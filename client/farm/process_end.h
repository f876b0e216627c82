// Waits for the end of a process of a farm that has been told to end.
#pragma once

#include <functional>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/process/process_identity.h"
#include "base/status.h"
#include "client/farm/farm_state.h"

namespace kiln::client {

// The kernel's answers about processes.
struct ProcessCalls {
  std::function<bool(const ProcessIdentity&)> is_running = IsRunning;
  std::function<Status(const ProcessIdentity&, int signal)> signal = SignalProcess;
};

// A process has this long to end by itself, and as long again once it is killed.
inline constexpr absl::Duration kEndPatience = absl::Seconds(10);

// Returns once the process has ended: by itself, or by SIGKILL after kEndPatience, which is said on
// stderr. Unavailable, with what to do, if it runs even then.
Status WaitForEnd(const FarmProcess& process, Clock& clock, const ProcessCalls& calls = {});

}  // namespace kiln::client
