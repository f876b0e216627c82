// The daemon's end of one child (child.h). It sends the child a request, watches the time, and
// reports how the child ended. Used by one thread at a time. Destroying it kills the child and all
// processes that the child started, and removes the child's scratch folder, to which TMPDIR points
// in the child.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/file/fd.h"
#include "base/file/file.h"
#include "base/process/message_child.h"
#include "runner/child.pb.h"
#include "runner/on_phase.h"
#include "runner/yield_flag.h"

namespace kiln::runner {

struct ChildLimits {
  // Time for loading, allocating and filling.
  absl::Duration prepare;
  // Time from the first run on.
  absl::Duration run;
  // Time for the first run alone, its check included.
  absl::Duration first_run = absl::InfiniteDuration();
};

struct ChildOutcome {
  enum Kind {
    kDone,
    // The child was gone before it began. The program is not at fault, and the request can go to
    // another child.
    kNotStarted,
    kDied,
    // The child was killed.
    kTimedOut,
    // The child was killed.
    kCancelled,
    // The child stood still for some reason (base/process/message_child.h), and was killed. Unlike
    // kNotStarted, it may have begun.
    kStopped,
  };
  Kind kind = kDone;
  // Set for kDone.
  wire::ChildDone done;
  // The last phase that began.
  wire::Phase phase = wire::STARTING;
  // Set for kTimedOut, if the limit of the first run alone was reached.
  bool in_first_run = false;
  // Set for other kinds: "killed by signal 11 (Segmentation fault) while running: ...".
  std::string message;
};

class ChildProcess {
 public:
  // Starts a child, and does not wait until it is ready. `command` is the child's argv. The child
  // can read `wanted`.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& command,
                                                       const YieldFlag& wanted);

  // Starts a child that only enters its sandbox and opens its device (--check of child.h). OK if it
  // did; else an error with its words.
  static Status Check(std::vector<std::string> command);

  // Runs a request. After any outcome but kDone the child is gone. `outputs` is the file of the
  // request (child.proto). `cancelled` is asked about 20 times a second. A cancelled program has
  // half a second to end by itself, which saves starting a new child. `on_phase` is called as a
  // phase is reported, while the child goes on; null: nobody.
  ChildOutcome Run(const wire::ChildRequest& request, const UniqueFd& outputs,
                   const ChildLimits& limits, const std::function<bool()>& cancelled,
                   const OnPhase& on_phase = nullptr);

  pid_t pid() const { return child_.pid(); }

 private:
  ChildProcess(TempDir scratch, MessageChild child)
      : scratch_(std::move(scratch)), child_(std::move(child)) {}

  // Outlives the child.
  TempDir scratch_;
  MessageChild child_;
};

}  // namespace kiln::runner
