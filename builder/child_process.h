// The daemon's end of one child (child.h): sends it a request, watches its time, and tells how it
// ended. Used by one thread at a time. Destroying it kills the child and all that it started.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/fd.h"
#include "base/message_pipe.h"
#include "base/subprocess.h"
#include "builder/child.pb.h"

namespace kiln::builder {

struct ChildOutcome {
  enum Kind {
    kDone,
    kNotStarted,  // gone before it began: no fault of the request, send it to another child
    kDied,
    kTimedOut,   // and killed
    kCancelled,  // and killed
  };
  Kind kind = kDone;
  wire::ChildDone done;  // of kDone
  std::string message;   // of the others: "killed by signal 6 (Aborted): last words"
};

class ChildProcess {
 public:
  // Does not wait for it to be ready. `command` is the child's argv.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& command);

  // The request's limits must be set; its time runs from when the child begins. After any outcome
  // but kDone the child is gone. `cancelled` is asked about 20 times a second.
  ChildOutcome Run(const v1::BuildRequest& request, const std::function<bool()>& cancelled);

  pid_t pid() const { return process_.pid(); }
  bool Running() { return process_.Running(); }
  int builds_done() const { return builds_done_; }

 private:
  ChildProcess(Subprocess process, MessagePipe pipe, UniqueFd output)
      : process_(std::move(process)), pipe_(std::move(pipe)), output_(std::move(output)) {}
  // What the child printed last, on one line; empties it.
  std::string TakeOutput();
  std::string DescribeEnd();

  Subprocess process_;
  MessagePipe pipe_;
  UniqueFd output_;  // memory file behind the child's stdout and stderr
  int builds_done_ = 0;
};

}  // namespace kiln::builder
