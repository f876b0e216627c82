// The daemon's end of one child (child.h): sends it a request, watches its time, and tells how it
// ended. Used by one thread at a time. Destroying it kills the child and all that it started, and
// removes its scratch folder, which is where TMPDIR points in it: nothing of a build is left behind.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/message_child.h"
#include "builder/child.pb.h"

namespace kiln::builder {

struct ChildOutcome {
  enum Kind {
    kDone,
    kNotStarted,  // gone before it began: no fault of the request, send it to another child
    kDied,
    kTimedOut,   // and killed
    kCancelled,  // and killed
    kStopped,    // and killed: it stood still, by whomever (base/message_child.h); not kNotStarted
  };
  Kind kind = kDone;
  wire::ChildDone done;  // of kDone
  std::string message;   // of the others: "killed by signal 6 (Aborted): last words"
};

class ChildProcess {
 public:
  // Does not wait for it to be ready. `command` is the child's argv.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& command);
  ~ChildProcess();

  // The request's limits must be set; its time runs from when the child begins. After any outcome
  // but kDone the child is gone. `cancelled` is asked about 20 times a second.
  ChildOutcome Run(const v1::BuildRequest& request, const std::function<bool()>& cancelled);

  pid_t pid() const { return child_->pid(); }
  bool Running() { return child_->Running(); }
  int builds_done() const { return builds_done_; }

 private:
  ChildProcess(TempDir scratch, MessageChild child)
      : scratch_(std::move(scratch)), child_(std::move(child)) {}

  TempDir scratch_;
  std::optional<MessageChild> child_;
  int builds_done_ = 0;
};

}  // namespace kiln::builder
