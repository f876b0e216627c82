// Which files a thread, and all that it starts, may still open: Landlock, which a process without
// any privilege may use (Linux 5.13, where its list of security modules has it).
//
// Opening is what is looked at: descriptors that are open stay, memory files too. A restricted
// thread cannot look into processes outside of its restriction either, nor (Linux 6.12) signal them
// or connect to their abstract sockets, nor (6.7) use TCP. Whether a file exists can still be asked.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln {

struct FileAccess {
  // Files, and folders with all below them; those that are not there are left out.
  std::vector<std::string> read = {};   // and execute
  std::vector<std::string> write = {};  // read, execute, write, make, remove
};

// Whether this kernel can restrict file access.
bool CanRestrictFiles();

// Of the calling thread, for good. Unimplemented where the kernel cannot. The thread gives up new
// privileges. Costs some 10 us and a few for each entry.
Status RestrictFiles(const FileAccess& access);

// Runs `work` on a thread of its own that is restricted so, and waits. Where the kernel cannot, it
// runs without: who must know asks CanRestrictFiles.
Status RunRestricted(const FileAccess& access, const std::function<void()>& work);

// Where the system has its shared libraries, and what its loader reads to find them.
std::vector<std::string> SystemLibraryFolders();

}  // namespace kiln
