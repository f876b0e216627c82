// A child process that answers requests, as messages over a pipe (base/process/message_pipe.h). Its
// output goes to a memory file, so that the last words of a child that dies can be reported. This
// file has the parent's end and the child's; callers define what the messages mean.
//
// A MessageChild is used by one thread at a time and starts no threads. Destroying it kills the
// child and all processes that the child started. A failed call is reported as an End (Ask), not as
// a Status.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/file/fd.h"
#include "base/process/message_pipe.h"
#include "base/process/subprocess.h"
#include "base/status.h"

namespace kiln {

class MessageChild {
 public:
  // Starts a child, and does not wait until it is ready. `command` is the child's argv. The child's
  // descriptor 3 is the pipe, 4 the memory file (ServeParent), and `inherited_fds` are those from 5
  // on. Its environment has the variables of ours that find libraries and configure drivers and
  // sanitizers, nothing else. `variables`, as "NAME=value", replace ours of these names.
  static StatusOr<MessageChild> Start(const std::vector<std::string>& command,
                                      const std::vector<int>& inherited_fds = {},
                                      const std::vector<std::string>& variables = {});

  enum class End {
    kAnswered,
    // The child died, or closed its pipe.
    kEnded,
    // The child sent a message that `take` cannot read.
    kGarbled,
    kTimedOut,
    kCancelled,
    // The child, or a process that it started, stood still (SIGSTOP). Found within 5 s, and at the
    // limit.
    kStopped,
  };
  struct Call {
    // Time from now, until a message sets another limit.
    absl::Duration limit;
    // Time for a cancelled child to answer, which saves starting a new child.
    absl::Duration cancel_grace = {};
    // Asked about 20 times a second.
    std::function<bool()> cancelled;
    // Descriptor that goes along with the request; -1: none.
    int descriptor = -1;
  };
  // Meaning of a child's message for the call.
  struct Taken {
    enum { kGoesOn, kAnswered, kGarbled } what = kGoesOn;
    // Time from now that replaces the limit before.
    std::optional<absl::Duration> limit = {};
  };

  // Sends `request`, and hands each message of the child to `take` until one is the answer. After
  // kEnded the caller calls DescribeEnd, and the child is gone after that. After all other ends but
  // kAnswered the child is gone at once.
  End Ask(std::string_view request, const Call& call,
          const std::function<Taken(const std::string& message)>& take);

  // Describes the end after kEnded: "killed by signal 6 (Aborted) while running: last words" if
  // `doing` is "while running". Waits for the child's end, then kills the processes that are left
  // of it.
  std::string DescribeEnd(std::string_view doing = "");

  pid_t pid() const { return process_.pid(); }
  bool Running() { return process_.Running(); }

 private:
  MessageChild(Subprocess process, MessagePipe pipe, UniqueFd output)
      : process_(std::move(process)), pipe_(std::move(pipe)), output_(std::move(output)) {}
  // Returns the child's last output on one line, and empties the memory file.
  std::string TakeOutput();

  Subprocess process_;
  MessagePipe pipe_;
  // Memory file behind the child's stdout and stderr.
  UniqueFd output_;
};

// Called once by the child, after DieWithParent. From now on output on stdout and stderr goes to
// the memory file, and no core is dumped. Returns the pipe.
MessagePipe ServeParent();

}  // namespace kiln
