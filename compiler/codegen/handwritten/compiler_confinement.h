// What a compiler of hand-written kernels may do. The source is a stranger's: it names files to
// include, and what they hold comes back in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file_access.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace kiln::codegen {

// Of the C compiler at `path` and what it starts: it reads the system's headers, libraries and
// programs, those of the folder that the compiler was installed into and those that
// KILN_CC_FOLDERS names (folders with ':' between), and writes below `scratch` alone.
FileAccess CCompilerAccess(const std::string& path, const std::string& scratch);

// Of NVRTC, which reads `folders`, the system's libraries and what the kernel tells of processors
// and memory. It writes nothing.
FileAccess NvrtcAccess(std::vector<std::string> folders);

// Makes the calling thread what the process of a C compiler may be: `access`; no network, no look
// into other processes, no signals to them, no process group or namespace of its own; no
// capabilities. Where the kernel lacks Landlock or seccomp, the rest.
Status ConfineCCompiler(const FileAccess& access);

// What each of its processes may use of the machine: 10 minutes of a processor, 256 MiB in a file, as
// much memory as its caller and 8 GiB at most; and all of its user together 512 processes more than
// the machine has now, which is what the kernel can count.
ResourceLimits CCompilerLimits();

// A sentence to add to messages of a compiler that was refused a file; "" for others.
std::string_view WhyRefused(std::string_view messages);

}  // namespace kiln::codegen
