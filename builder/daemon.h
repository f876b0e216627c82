// The builder as a program.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln::builder {

// Parses the command line, serves until SIGTERM or SIGINT (or builds once), returns the exit
// status. Called from main before any other thread runs, because it blocks those signals.
// `child_args` are the arguments that make this executable a child: it then calls BuilderChildMain
// (child.h) with the arguments that follow.
int BuilderMain(int argc, char** argv, const std::vector<std::string>& child_args = {"--child"});

// Adds the flags to an empty command, for programs that describe or check them. The returned object
// holds the values into which they are parsed, so it must outlive the parse.
std::shared_ptr<void> AddBuilderFlags(CLI::App& app);

}  // namespace kiln::builder
