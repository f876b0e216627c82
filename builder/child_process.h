// The daemon's end of one child (child.h). It sends the child a request, watches the time, and
// reports how the child ended. Used by one thread at a time. Destroying it kills the child and all
// processes that the child started, and removes the child's scratch folder, to which TMPDIR points
// in the child: nothing of a build is left behind.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/process/message_child.h"
#include "builder/child.pb.h"

namespace kiln::builder {

struct ChildOutcome {
  enum Kind {
    kDone,
    // The child was gone before it began. The request is not at fault and can go to another child.
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
  // Set for other kinds: "killed by signal 6 (Aborted): last words".
  std::string message;
};

class ChildProcess {
 public:
  // Starts a child, and does not wait until it is ready. `command` is the child's argv.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& command);
  ~ChildProcess();

  // Runs a request. The request's limits must be set; its time runs from when the child begins.
  // After any outcome but kDone the child is gone. `cancelled` is asked about 20 times a second.
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
