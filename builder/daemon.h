// The builder as a program.
#pragma once

#include <string>
#include <vector>

namespace kiln::builder {

// Parses the command line, serves until SIGTERM or SIGINT (or builds once), returns the exit
// status. Call from main before any other thread runs: it blocks those signals. child_args: what
// this executable is started with to become a child, i.e. to call BuilderChildMain (child.h) with
// what follows.
int BuilderMain(int argc, char** argv, const std::vector<std::string>& child_args = {"--child"});

}  // namespace kiln::builder
