// The child process of a builder. It builds one request after another, and ends when its daemon
// closes the pipe. A compiler that crashes or hangs harms only this process.
#pragma once

namespace kiln::builder {

// Serves its parent (base/process/message_child.h) as child.proto says. Flags: those of a sandbox
// (base/process/sandbox.h). Returns the
// exit status. For a daemon (child_process.h) to start, not for people.
int BuilderChildMain(int argc, char** argv);

}  // namespace kiln::builder
