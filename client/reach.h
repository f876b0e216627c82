// The first call to a service: does anybody answer?
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"

namespace kiln::client {

// How long a connection that breaks while it is made is made again.
inline constexpr absl::Duration kReachPatience = absl::Seconds(2);

// Calls once, and again while the connection breaks before there is an answer: a handshake that is
// cut off mostly goes through the next time. A refused connection is final: nobody listens. `call`
// returns what gRPC says of one call; so does Reach, of the last one.
Status Reach(absl::FunctionRef<Status()> call, Clock& clock);

}  // namespace kiln::client
