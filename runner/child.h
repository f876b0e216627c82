// The child process of a runner: holds the device, does one request of child.proto at a time, and
// ends when its daemon closes the pipe. What the programs it runs do to it stays here.
#pragma once

namespace kiln::runner {

// Flags: --device cpu, --threads N, --cpu-seconds N, --no-drop-privileges. Serves its parent
// (base/message_child.h) as child.proto says; descriptor 5 is the wanted flag. Returns the exit
// status. For a daemon (child_process.h) to start, not for people.
int RunnerChildMain(int argc, char** argv);

}  // namespace kiln::runner
