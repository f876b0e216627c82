// Limits of a compiler of hand-written kernels. The source is a stranger's: it names files to
// include, whose contents come back in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process/file_access.h"
#include "base/process/subprocess.h"
#include "base/status.h"

namespace kiln::codegen {

// Returns the access of the C compiler at `path` and of the processes that it starts. It may read
// the system's headers, libraries and programs, those of the compiler's own installation folder,
// and the folders that KILN_CC_FOLDERS names (with ':' between). It may write only below `scratch`.
FileAccess CCompilerAccess(const std::string& path, const std::string& scratch);

// Returns the access of NVRTC, which may read `folders`, the system's libraries and the kernel's
// files about processors and memory. It may write nothing.
FileAccess NvrtcAccess(std::vector<std::string> folders);

// Confines the calling thread, which becomes the process of a C compiler, to `access`. It gets no
// network, no view of other processes and no signals to them, no process group or namespace of its
// own, and no capabilities. If the kernel lacks Landlock or seccomp, the other restrictions still
// apply.
Status ConfineCCompiler(const FileAccess& access);

// Returns the limits of each process of the compiler: 10 minutes of a processor, 256 MiB in a file,
// and as much memory as its caller, but at most 8 GiB. All processes of its user together may be
// 512 more than the machine has now, because the kernel counts processes per user.
ResourceLimits CCompilerLimits();

// Returns a sentence to add to the messages of a compiler that was refused a file. "" for other
// messages.
std::string_view WhyRefused(std::string_view messages);

}  // namespace kiln::codegen
