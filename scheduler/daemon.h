// The scheduler as a program.
#pragma once

#include <memory>

namespace CLI {
class App;
}

namespace kiln::scheduler {

// Parses the command line, serves until SIGTERM or SIGINT, and returns the exit status. Must be
// called from main before any other thread runs, because it blocks those signals.
int SchedulerMain(int argc, char** argv);

// Adds the flags to an empty command, for programs that describe or check them. The returned object
// holds the values into which they are parsed, so it must outlive the parse.
std::shared_ptr<void> AddSchedulerFlags(CLI::App& app);

}  // namespace kiln::scheduler
