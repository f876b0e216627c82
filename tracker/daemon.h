// The tracker as a program.
#pragma once

namespace kiln::tracker {

// Parses the command line, serves until SIGTERM or SIGINT, returns the exit status. Called from
// main before any other thread runs, because it blocks those signals.
int TrackerMain(int argc, char** argv);

}  // namespace kiln::tracker
