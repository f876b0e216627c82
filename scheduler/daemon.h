// The scheduler as a program.
#pragma once

namespace kiln::scheduler {

// Parses the command line, serves until SIGTERM or SIGINT, returns the exit status. Call from main
// before any other thread runs: it blocks those signals.
int SchedulerMain(int argc, char** argv);

}  // namespace kiln::scheduler
