// Child processes, by posix_spawn: never fork, since a process that runs gRPC must not fork.
//
// A child starts in a process group of its own, with an empty signal mask, default signal actions,
// and no descriptor but 0, 1, 2 and those listed in inherited_fds. When a Subprocess is destroyed,
// the child's whole group is killed and the child reaped, so that none is left behind.
//
// A child of ours calls DieWithParent() first thing in main: then it is gone when its parent is
// gone, be it by kill -9. (Linux sends that signal when the *thread* that spawned ends; therefore
// all spawning is done by one thread that lives as long as the process.)
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
#include "base/fd.h"
#include "base/status.h"

namespace kiln {

// Absent = as the parent's.
struct ResourceLimits {
  std::optional<int64_t> address_space_bytes = {};  // RLIMIT_AS; sanitizer builds need terabytes
  std::optional<int64_t> data_bytes = {};           // RLIMIT_DATA: heap and private mappings
  std::optional<int64_t> cpu_s = {};                // RLIMIT_CPU: SIGXCPU, one second later SIGKILL
  std::optional<int64_t> open_files = {};           // RLIMIT_NOFILE
  std::optional<int64_t> file_bytes = {};           // RLIMIT_FSIZE: SIGXFSZ
  std::optional<int64_t> processes = {};            // RLIMIT_NPROC, of all of its user
  bool core_dumps = false;
};

// Sets the limits of process `pid` (0 = this process).
// One that is above the hard limit is an error.
Status ApplyResourceLimits(const ResourceLimits& limits, pid_t pid = 0);

struct SubprocessOptions {
  enum class Stream { kInherit, kNull, kPipe };

  std::vector<std::string> argv = {};  // argv[0] is looked up in PATH when it has no slash
  // "NAME=value"; these replace our own variables of the same names.
  std::vector<std::string> env = {};
  bool clear_env = false;  // start from no variables instead of ours
  Stream input = Stream::kNull;
  Stream output = Stream::kInherit;
  Stream error = Stream::kInherit;
  // The i-th becomes descriptor 3 + i of the child.
  // Still the caller's, who may close them after Spawn.
  std::vector<int> inherited_fds = {};
  bool own_process_group = true;
  // Called before the start on a thread of its own, which the child begins as: what the thread has
  // given up (file_access.h, system_call_filter.h) the child has given up. A child that asks for
  // the end with its parent (DieWithParent) must not have this: the thread ends at once.
  std::function<Status()> confine = nullptr;
  // Set right after the start; a child that must not run an
  // instruction without them calls ApplyResourceLimits too.
  ResourceLimits limits = {};
};

struct ExitStatus {
  int code = 0;    // exit status; meaningful when signal is 0
  int signal = 0;  // the signal that killed it
  bool core_dumped = false;
  double cpu_s = 0;  // user + system
  int64_t max_rss_bytes = 0;

  bool ok() const { return code == 0 && signal == 0; }
  // "exit status 3", "killed by signal 11 (Segmentation fault)"
  std::string ToString() const;
};

// Kill and Running may be called by any thread, also
// during a Wait; all else by one thread at a time.
class Subprocess {
 public:
  // NotFound when there is no such program.
  static StatusOr<Subprocess> Spawn(const SubprocessOptions& options);

  Subprocess(Subprocess&&) noexcept;
  Subprocess& operator=(Subprocess&&) noexcept;
  ~Subprocess();

  pid_t pid() const;

  // Our ends of the streams that are pipes; invalid otherwise. The caller may take or reset them.
  UniqueFd& input();
  UniqueFd& output();
  UniqueFd& error();

  // Waits for the end of the child, kills what is left of its process group, and reaps it.
  // DeadlineExceeded when it still runs after `timeout`. Afterwards returns the same status again.
  StatusOr<ExitStatus> Wait(absl::Duration timeout = absl::InfiniteDuration());
  bool Running();

  // Sends the signal to the whole group (to the child alone without a group of its own). Nothing
  // happens when it has been reaped.
  void Kill(int signal = SIGKILL);
  // SIGTERM, then after `grace` SIGKILL; returns how it ended.
  StatusOr<ExitStatus> Stop(absl::Duration grace);

  struct State;

 private:
  explicit Subprocess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Runs a program to its end with `input` on stdin. On time-out it is killed and DeadlineExceeded
// returned. Output beyond max_output_bytes (each of both streams) is read and dropped.
struct RunResult {
  ExitStatus exit;
  std::string output;
  std::string error;
};
StatusOr<RunResult> RunToEnd(SubprocessOptions options, std::string_view input = {},
                             absl::Duration timeout = absl::InfiniteDuration(),
                             size_t max_output_bytes = 16 << 20);

// The path of the running program.
StatusOr<std::string> CurrentExecutable();

// In the child: be killed by SIGKILL when the parent
// process ends. If it has ended already, exits at once. For
// direct children of Spawn only, not through a shell or wrapper.
void DieWithParent();

}  // namespace kiln
