// Makes the first call to a service, to find out whether anybody answers.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"

namespace kiln::client {

// How long a connection is tried again if it breaks while it is made.
inline constexpr absl::Duration kReachPatience = absl::Seconds(2);

// Calls once, and again while the connection breaks before there is an answer: a handshake that is
// cut off mostly succeeds the next time. A refused connection is final, since nobody listens.
// `call` returns the status of one gRPC call; Reach returns that of the last one.
Status Reach(absl::FunctionRef<Status()> call, Clock& clock);

}  // namespace kiln::client
