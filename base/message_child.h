// A child process that answers requests: messages over a pipe (base/message_pipe.h), what it prints
// in a memory file, so that the words of one that dies can be told. The parent's end and the
// child's; what the messages mean is theirs to agree.
//
// A MessageChild is used by one thread at a time and starts none. Destroying it kills the child and
// all that it started. What goes wrong in a call is its end (Ask), not a Status.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/fd.h"
#include "base/message_pipe.h"
#include "base/status.h"
#include "base/subprocess.h"

namespace kiln {

class MessageChild {
 public:
  // Does not wait for it to be ready. `command` is the child's argv. Its descriptor 3 is the pipe,
  // 4 the memory file (ServeParent), `inherited_fds` are those from 5 on. Of our environment it has
  // what finds libraries and configures drivers and sanitizers, nothing else; and `variables`,
  // "NAME=value", instead of ours of these names.
  static StatusOr<MessageChild> Start(const std::vector<std::string>& command,
                                      const std::vector<int>& inherited_fds = {},
                                      const std::vector<std::string>& variables = {});

  enum class End {
    kAnswered,
    kEnded,    // the child died, or closed its pipe
    kGarbled,  // it sent what `take` cannot read
    kTimedOut,
    kCancelled,
    kStopped,  // it or one that it started stood still (SIGSTOP): found within 5 s, and at the limit
  };
  struct Call {
    absl::Duration limit;              // from now, until a message sets another
    absl::Duration cancel_grace = {};  // for a cancelled child to answer, which spares a new one
    std::function<bool()> cancelled;   // asked about 20 times a second
    int descriptor = -1;               // goes along with the request; -1: none
  };
  // What a message of the child means for the call.
  struct Taken {
    enum { kGoesOn, kAnswered, kGarbled } what = kGoesOn;
    std::optional<absl::Duration> limit = {};  // from now, instead of the one before
  };

  // Sends `request`, hands each message of the child to `take` until one is the answer. After
  // kEnded call DescribeEnd; after it and all other ends but kAnswered the child is gone.
  End Ask(std::string_view request, const Call& call,
          const std::function<Taken(const std::string& message)>& take);

  // After kEnded: "killed by signal 6 (Aborted) while running: last words", where `doing` is
  // "while running". Waits for its end, then kills what is left.
  std::string DescribeEnd(std::string_view doing = "");

  pid_t pid() const { return process_.pid(); }
  bool Running() { return process_.Running(); }

 private:
  MessageChild(Subprocess process, MessagePipe pipe, UniqueFd output)
      : process_(std::move(process)), pipe_(std::move(pipe)), output_(std::move(output)) {}
  // What the child printed last, on one line; empties it.
  std::string TakeOutput();

  Subprocess process_;
  MessagePipe pipe_;
  UniqueFd output_;  // memory file behind the child's stdout and stderr
};

// In the child, once, after DieWithParent: from now on the parent keeps what is printed on stdout
// and stderr, and no core is dumped. Returns the pipe.
MessagePipe ServeParent();

}  // namespace kiln
