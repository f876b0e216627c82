// The child process of a builder: builds one request after another and ends when its daemon closes
// the pipe. What the compiler does to its process stays here.
#pragma once

namespace kiln::builder {

// No flags. Serves its parent (base/message_child.h) as child.proto says. Returns the exit status.
// For a daemon (child_process.h) to start, not for people.
int BuilderChildMain(int argc, char** argv);

}  // namespace kiln::builder
