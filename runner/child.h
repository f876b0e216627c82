// The child process of a runner. It holds the device, does one request of child.proto at a time,
// and ends when its daemon closes the pipe. Programs that crash or hang harm only this process.
#pragma once

namespace kiln::runner {

// Serves its parent (base/process/message_child.h) as child.proto says. Flags: --device cpu,
// --threads N,
// --cpu-seconds N, --no-drop-privileges, those of a sandbox (base/process/sandbox.h), and --check:
// only enters the sandbox and opens the device. Descriptor 5 is the wanted flag. Returns the exit
// status. For a daemon (child_process.h) to start, not for people.
int RunnerChildMain(int argc, char** argv);

}  // namespace kiln::runner
