// Tells of the calls that a server refuses before their services hear of them.
#pragma once

#include <functional>
#include <string_view>

#include "base/server/caller_check.h"
#include "base/status.h"

namespace kiln {

// `user` is the name in the caller's certificate if he is a member of the farm, whose role was
// another, and "" for a stranger, whatever name he shows. `call` is "Scheduler.Submit". Threads of
// gRPC call it, many at once, so it must not wait.
using RefusalNote =
    std::function<void(std::string_view user, std::string_view call, const Status& why)>;

// Returns the check, which tells `note` of each refusal: Unauthenticated or PermissionDenied. Null
// if `check` is null.
CallerCheck NoteRefusals(CallerCheck check, RefusalNote note);

}  // namespace kiln
