// The scheduler as a program.
#pragma once

namespace kiln::scheduler {

// Parses the command line, serves until SIGTERM or SIGINT, and returns the exit status. Must be
// called from main before any other thread runs, because it blocks those signals.
int SchedulerMain(int argc, char** argv);

}  // namespace kiln::scheduler
