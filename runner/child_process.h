// The daemon's end of one child (child.h): sends it a request, watches its time, and tells how it
// ended. Used by one thread at a time. Destroying it kills the child and all that it started.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/fd.h"
#include "base/message_child.h"
#include "runner/child.pb.h"
#include "runner/wanted_flag.h"

namespace kiln::runner {

struct ChildLimits {
  absl::Duration prepare;                               // loading, allocating, filling
  absl::Duration run;                                   // from the first run on
  absl::Duration first_run = absl::InfiniteDuration();  // of that alone, its check included
};

struct ChildOutcome {
  enum Kind {
    kDone,
    kNotStarted,  // the child was gone before it began: no fault of the program, send it to another
                  // child
    kDied,
    kTimedOut,   // and killed
    kCancelled,  // and killed
    kStopped,    // and killed: it stood still, by whomever (base/message_child.h); not kNotStarted
  };
  Kind kind = kDone;
  wire::ChildDone done;                // of kDone
  wire::Phase phase = wire::STARTING;  // the last that began
  bool in_first_run = false;           // of kTimedOut: by the limit of the first run alone
  std::string
      message;  // of the others: "killed by signal 11 (Segmentation fault) while running: ..."
};

class ChildProcess {
 public:
  // Does not wait for it to be ready. `command` is the child's argv; it can read `wanted`.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& command,
                                                       const WantedFlag& wanted);

  // After any outcome but kDone the child is gone. `outputs` is the file of the request
  // (child.proto). `cancelled` is asked about 20 times a second; a cancelled program has half a
  // second to end by itself, which spares a new child.
  ChildOutcome Run(const wire::ChildRequest& request, const UniqueFd& outputs,
                   const ChildLimits& limits, const std::function<bool()>& cancelled);

  pid_t pid() const { return child_.pid(); }

 private:
  explicit ChildProcess(MessageChild child) : child_(std::move(child)) {}

  MessageChild child_;
};

}  // namespace kiln::runner
