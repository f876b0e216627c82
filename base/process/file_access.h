// Restricts the files that a thread, and all that it starts, may still open. It uses Landlock,
// which a process without any privilege may use (Linux 5.13, if Landlock is in its list of security
// modules).
//
// Only opening is restricted: descriptors that are open stay usable, also those of memory files. A
// restricted thread cannot look into processes outside of its restriction either, nor (Linux 6.12)
// signal them or connect to their abstract sockets, nor (Linux 6.7) use TCP. The thread can still
// ask whether a file exists.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln {

struct FileAccess {
  // Files to read and execute, and folders whose files at any depth may be read and executed. Paths
  // that do not exist are left out.
  std::vector<std::string> read = {};
  // The same for reading, executing, writing, making and removing files.
  std::vector<std::string> write = {};
};

// Returns whether this kernel can restrict file access.
bool CanRestrictFiles();

// Returns whether a restriction covers the shortening of files, too (Linux 6.2). Before, a thread
// can shorten and empty files that it may not write.
bool CanRestrictTruncation();

// Restricts the calling thread for good. Unimplemented if the kernel cannot. The thread gives up
// new privileges. Costs some 10 us, and a few more for each entry.
Status RestrictFiles(const FileAccess& access);

// Runs `work` on a restricted thread of its own, and waits for its end. If the kernel cannot
// restrict files, `work` runs without a restriction: callers that must know ask CanRestrictFiles.
Status RunRestricted(const FileAccess& access, const std::function<void()>& work);

// Returns the folders of the system's shared libraries, and the files that its loader reads to find
// them.
std::vector<std::string> SystemLibraryFolders();

}  // namespace kiln
