// The runner as a program.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln::runner {

// Parses the command line, serves until SIGTERM or SIGINT (or measures once), returns the exit
// status. Called from main before any other thread runs, because it blocks those signals.
// `child_args` are the arguments that make this executable a child: it then calls RunnerChildMain
// with the arguments that follow.
int RunnerMain(int argc, char** argv, const std::vector<std::string>& child_args = {"--child"});

// Adds the flags to an empty command, for programs that describe or check them. The returned object
// holds the values into which they are parsed, so it must outlive the parse.
std::shared_ptr<void> AddRunnerFlags(CLI::App& app);

}  // namespace kiln::runner
