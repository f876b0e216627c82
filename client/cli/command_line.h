// The syntax of `kiln`: its commands, their flags, and the checks before anything runs. The daemons
// parse their own flags (main.cc passes these on).
#pragma once

namespace kiln::client {

// Returns the exit status: 0, 1 on failure ("kiln: ..." on stderr), 2 on wrong usage, 130 after
// Ctrl-C. main calls it before any other thread runs.
int RunCommandLine(int argc, char** argv);

}  // namespace kiln::client
