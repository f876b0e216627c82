// The builder as a program.
#pragma once

#include <string>
#include <vector>

namespace kiln::builder {

// Parses the command line, serves until SIGTERM or SIGINT (or builds once), returns the exit
// status. Called from main before any other thread runs, because it blocks those signals.
// `child_args` are the arguments that make this executable a child: it then calls BuilderChildMain
// (child.h) with the arguments that follow.
int BuilderMain(int argc, char** argv, const std::vector<std::string>& child_args = {"--child"});

}  // namespace kiln::builder
