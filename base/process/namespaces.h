// Namespaces of a child process that runs or compiles strangers' code: it sees a few files, no
// network, no process but its own, and is an unprivileged user. Linux 5.12 or newer.
//
// Root makes the namespaces by its own right. Any other user makes them inside of a user namespace,
// which some systems forbid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace kiln {

// The uid of "nobody" everywhere. The kernel uses it too for users that have no id here.
inline constexpr uint32_t kNobody = 65534;

// The files that a process may see. All paths are absolute; ones that do not exist are left out.
struct FileView {
  // Files and folders that are seen at the same paths, read-only.
  std::vector<std::string> read = {};
  // Device files that are seen at the same paths, to read and write.
  std::vector<std::string> devices = {};
  // Folders that are seen at the same paths and may be written, for instance a driver's cache.
  std::vector<std::string> write = {};
  // A private /dev/shm.
  bool has_shared_memory = false;
  // The process may connect to servers of the machine by a socket that is a file which it sees.
  bool has_sockets = false;
  // An empty folder of this process. Inside of the namespaces an empty file system in memory is
  // there, which ends with the process.
  std::string scratch = {};
  // Limit of the scratch folder's content.
  int64_t scratch_bytes = int64_t{1} << 30;
};

// Continues in a new process inside of new mount, process, network and IPC namespaces, where it is
// process 2 and sees `view` and /proc, and of a new user namespace. The calling process never
// returns from the call: it waits for the new process and ends as that one ends, after all
// processes of the namespaces have been killed. They are also killed when the calling process ends.
//
// If `nobody` is true and this process is root, the new process is user 65534. Where this process
// cannot become that user (CanBecomeNobody), the new one is it inside of its user namespace only.
// It has no capabilities, and below /proc it can write the settings of processes alone, not those
// of the machine. Called by a process of one thread; descriptors stay with the new process. On an
// error the caller must end. Costs some 3 ms.
Status EnterNamespaces(const FileView& view, bool nobody);

// Returns whether EnterNamespaces works here: OK, or an error that says what was found and what
// to do. Forks and tries it. Costs some 5 ms; a process that does not answer within `limit`, for
// instance because a file server hangs, is killed.
Status TryNamespaces(absl::Duration limit = absl::Seconds(10));

// Gives up the capabilities of this process.
Status DropCapabilities();

// Returns whether user 65534 exists. In a user namespace only some users do.
bool NobodyExists();

// Returns whether this process is root and can become user 65534: the user exists, and the process
// has the capabilities to change its user and to give files away.
bool CanBecomeNobody();

// Returns whether root here is also root outside of this process's user namespace. Outside of all
// user namespaces it is.
bool IsRootOutside();

// Makes user 65534 the owner of a file or folder.
Status GiveToNobody(const std::string& path);

// If this process is root, it becomes user 65534 for good. If it ends with its parent
// (PR_SET_PDEATHSIG), it still does.
Status BecomeNobody();

}  // namespace kiln
