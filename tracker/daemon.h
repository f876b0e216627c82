// The tracker as a program.
#pragma once

#include <memory>

namespace CLI {
class App;
}

namespace kiln::tracker {

// Parses the command line, serves until SIGTERM or SIGINT, returns the exit status. Called from
// main before any other thread runs, because it blocks those signals.
int TrackerMain(int argc, char** argv);

// Adds the flags to an empty command, for programs that describe or check them. The returned object
// holds the values into which they are parsed, so it must outlive the parse.
std::shared_ptr<void> AddTrackerFlags(CLI::App& app);

}  // namespace kiln::tracker
