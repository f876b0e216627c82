// The sandbox of a daemon's child processes, which run or compile strangers' code: the means that
// this machine has, as a daemon finds them at its start, and the child's entrance.
//
// The means are namespaces (namespaces.h), an unprivileged user, Landlock (file_access.h), a filter
// of system calls (system_call_filter.h), and limits of a control group (cgroup.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/process/cgroup.h"
#include "base/process/namespaces.h"
#include "base/status.h"

namespace CLI {
class App;
}

namespace kiln {

// The sandbox of a child, which it gets by its command line.
struct Sandbox {
  // False: the child is not restricted. For tests of a child alone.
  bool wanted = false;
  bool namespaces = false;
  // Root becomes user 65534.
  bool nobody = false;
  // Folder of a control group; "": none.
  std::string group = {};
  // The files that the child needs. The scratch folder is $TMPDIR of the child.
  FileView view = {};
};

// The sandbox that this machine has, for the log, for `kiln workers` and for --require-sandbox.
struct SandboxFound {
  Sandbox sandbox = {};
  // Means that apply, for instance "namespaces", "seccomp", "landlock", "nobody", "cgroup".
  std::vector<std::string> applied = {};
  // For each other means a sentence: what was found, and what to do.
  std::vector<std::string> gaps = {};
};

struct SandboxWish {
  FileView view = {};
  GroupLimits limits = {};
  // False for a runner that was told to keep the privileges of root.
  bool nobody = true;
};

// Tries the means, in a daemon before it has threads. Costs some 10 ms.
SandboxFound FindSandbox(const SandboxWish& wish);

// Finds the strictest sandbox in which a device opens. `opens` starts a child that opens the device
// in a sandbox. First namespaces are given up, then the change of root's user; each that is becomes
// a gap, with the reason. If the device opens in none, its error is returned and nothing is given
// up, because the reason lies elsewhere. Calls `opens` three times at most.
Status FitSandbox(SandboxFound& found, const std::function<Status(const Sandbox&)>& opens);

// FailedPrecondition with all gaps; OK: there is none. For --require-sandbox.
Status RequireNoGaps(const SandboxFound& found);

// Returns the child's arguments that say which sandbox it is in.
std::vector<std::string> ArgumentsOf(const Sandbox& sandbox);

// Adds the options that ArgumentsOf gives.
void AddSandboxOptions(CLI::App& app, Sandbox& sandbox);

// Enters the sandbox for good. The child calls it before it starts threads and reads a request. In
// namespaces it returns in another process (EnterNamespaces). On an error the child must end.
Status EnterSandbox(Sandbox sandbox);

}  // namespace kiln
