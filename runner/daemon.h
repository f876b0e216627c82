// The runner as a program.
#pragma once

#include <string>
#include <vector>

namespace kiln::runner {

// Parses the command line, serves until SIGTERM or SIGINT (or measures once), returns the exit
// status. Called from main before any other thread runs, because it blocks those signals.
// `child_args` are the arguments that make this executable a child: it then calls RunnerChildMain
// with the arguments that follow.
int RunnerMain(int argc, char** argv, const std::vector<std::string>& child_args = {"--child"});

}  // namespace kiln::runner
