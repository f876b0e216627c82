// Stop signals of child processes whose parent alone ends them.
#pragma once

#include <signal.h>

namespace kiln {

// From now on this process ignores SIGTERM, SIGINT and SIGHUP, and so do the processes that it
// starts. A child of a daemon calls it first of all. Process managers such as Slurm, or systemd
// with KillMode=control-group, send SIGTERM to all processes of a service at once. A child that
// died of it would look as if the program in its hands had crashed. The daemon gets the signal,
// and ends its children by SIGKILL (DieWithParent of subprocess.h).
inline void LeaveStopSignalsToParent() {
  for (const int stop : {SIGTERM, SIGINT, SIGHUP}) signal(stop, SIG_IGN);
}

}  // namespace kiln
