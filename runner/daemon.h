// The runner as a program.
#pragma once

#include <string>
#include <vector>

namespace kiln::runner {

// Parses the command line, serves until SIGTERM or SIGINT (or measures once), returns the exit
// status. Call from main before any other thread runs: it blocks those signals. child_args: what
// this executable is started with to become a child, i.e. to call RunnerChildMain with what
// follows.
int RunnerMain(int argc, char** argv, const std::vector<std::string>& child_args = {"--child"});

}  // namespace kiln::runner
