#include "client/farm/process_end.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>

namespace kiln::client {
namespace {

constexpr absl::Duration kPollPause = absl::Milliseconds(10);

bool EndsInTime(const ProcessIdentity& process, Clock& clock, const ProcessCalls& calls) {
  const double end = clock.MonotonicSeconds() + absl::ToDoubleSeconds(kEndPatience);
  while (calls.is_running(process)) {
    if (clock.MonotonicSeconds() >= end) return false;
    clock.SleepFor(kPollPause);
  }
  return true;
}

}  // namespace

Status WaitForEnd(const FarmProcess& process, Clock& clock, const ProcessCalls& calls) {
  if (EndsInTime(process.process, clock, calls)) return OkStatus();
  fmt::print(stderr, "kiln: the {}, process {}, did not end within {}; it is killed\n",
             process.name, process.process.pid, absl::FormatDuration(kEndPatience));
  const Status killed = calls.signal(process.process, SIGKILL);
  if (EndsInTime(process.process, clock, calls)) return OkStatus();
  return Unavailable(
      "the {} of the farm, process {}, is still there {} after it was killed{}; the kernel holds "
      "it, for instance in a call of a driver or of a disk: `ps -o stat,wchan -p {}` shows where. "
      "Give `kiln farm down` again once it has ended, or restart the machine",
      process.name, process.process.pid, absl::FormatDuration(kEndPatience),
      killed.ok() ? "" : fmt::format(" ({})", Message(killed)), process.process.pid);
}

}  // namespace kiln::client
