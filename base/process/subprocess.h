// Child processes by posix_spawn. Kiln never forks, because a process that runs gRPC must not fork.
//
// A child starts in a process group of its own, with an empty signal mask, default signal actions,
// and no descriptors but 0, 1, 2 and those listed in inherited_fds. When a Subprocess is destroyed,
// the child's whole group is killed and the child reaped, so that no process is left behind.
//
// A child of ours calls DieWithParent() first thing in main: it is then gone when its parent is
// gone, even after kill -9. Linux sends that signal when the *thread* that spawned the child ends,
// so one thread that lives as long as the process does all spawning.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/file/fd.h"
#include "base/status.h"

namespace kiln {

// Limits that are absent stay as the parent's.
struct ResourceLimits {
  // RLIMIT_AS; sanitizer builds need terabytes.
  std::optional<int64_t> address_space_bytes = {};
  // RLIMIT_DATA: heap and private mappings.
  std::optional<int64_t> data_bytes = {};
  // RLIMIT_CPU: SIGXCPU, and SIGKILL one second later.
  std::optional<int64_t> cpu_s = {};
  // RLIMIT_NOFILE
  std::optional<int64_t> open_files = {};
  // RLIMIT_FSIZE: SIGXFSZ.
  std::optional<int64_t> file_bytes = {};
  // RLIMIT_NPROC: all processes of the user.
  std::optional<int64_t> processes = {};
  bool core_dumps = false;
};

// Sets the limits of process `pid` (0 = this process). A limit above the hard limit is an error.
Status ApplyResourceLimits(const ResourceLimits& limits, pid_t pid = 0);

struct SubprocessOptions {
  enum class Stream { kInherit, kNull, kPipe };

  // argv[0] is looked up in PATH if it has no slash.
  std::vector<std::string> argv = {};
  // Each is "NAME=value" and replaces our own variable of the same name.
  std::vector<std::string> env = {};
  // Starts from no variables instead of ours.
  bool clear_env = false;
  Stream input = Stream::kNull;
  Stream output = Stream::kInherit;
  Stream error = Stream::kInherit;
  // The i-th becomes descriptor 3 + i of the child. The caller still owns the descriptors, and may
  // close them after Spawn.
  std::vector<int> inherited_fds = {};
  bool own_process_group = true;
  // Called before the start, on a thread of its own that becomes the child. The child lacks all
  // rights that the thread has given up (file_access.h, system_call_filter.h). A child that asks to
  // end with its parent (DieWithParent) must not have this, because the thread ends at once.
  std::function<Status()> confine = nullptr;
  // Set right after the start. A child that must not run an instruction without the limits calls
  // ApplyResourceLimits too.
  ResourceLimits limits = {};
};

struct ExitStatus {
  // Exit status; valid if signal is 0.
  int code = 0;
  // The signal that killed the child.
  int signal = 0;
  bool core_dumped = false;
  // User and system time.
  double cpu_s = 0;
  int64_t max_rss_bytes = 0;

  bool ok() const { return code == 0 && signal == 0; }
  // Returns "exit status 3" or "killed by signal 11 (Segmentation fault)".
  std::string ToString() const;
};

// Any thread may call Kill and Running, also during a Wait. All other functions are for one thread
// at a time.
class Subprocess {
 public:
  // NotFound if there is no such program.
  static StatusOr<Subprocess> Spawn(const SubprocessOptions& options);

  Subprocess(Subprocess&&) noexcept;
  Subprocess& operator=(Subprocess&&) noexcept;
  ~Subprocess();

  pid_t pid() const;

  // Our ends of the streams that are pipes; invalid for other streams. The caller may take or reset
  // them.
  UniqueFd& input();
  UniqueFd& output();
  UniqueFd& error();

  // Waits for the end of the child, kills the rest of its process group, and reaps the child.
  // DeadlineExceeded if the child still runs after `timeout`. Later calls return the same status
  // again.
  StatusOr<ExitStatus> Wait(absl::Duration timeout = absl::InfiniteDuration());
  bool Running();

  // Sends the signal to the whole group, or to the child alone if it has no group of its own. Does
  // nothing if the child has been reaped.
  void Kill(int signal = SIGKILL);
  // Sends SIGTERM, and SIGKILL after `grace`. Returns how the child ended.
  StatusOr<ExitStatus> Stop(absl::Duration grace);

  struct State;

 private:
  explicit Subprocess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Runs a program to its end with `input` on stdin. On time-out the program is killed, and
// DeadlineExceeded returned. Output beyond max_output_bytes (of each stream) is read and dropped.
struct RunResult {
  ExitStatus exit;
  std::string output;
  std::string error;
};
StatusOr<RunResult> RunToEnd(SubprocessOptions options, std::string_view input = {},
                             absl::Duration timeout = absl::InfiniteDuration(),
                             size_t max_output_bytes = 16 << 20);

// Returns the path of the running program.
StatusOr<std::string> CurrentExecutable();

// Called by a child, so that SIGKILL ends it when its parent process ends. If the parent has ended
// already, the call exits at once. For direct children of Spawn only, not through a shell or
// wrapper.
void DieWithParent();

}  // namespace kiln
