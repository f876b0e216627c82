// The syntax of `kiln`: its commands, their flags and what is refused before anything runs. The
// daemons parse their own flags (main.cc hands over to them).
#pragma once

namespace kiln::client {

// The exit status: 0, 1 on failure ("kiln: ..." on stderr), 2 on wrong usage, 130 after Ctrl-C.
// Call from main before any other thread runs.
int RunCommandLine(int argc, char** argv);

}  // namespace kiln::client
