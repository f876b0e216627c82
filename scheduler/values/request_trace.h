// A job keeps the trace of its submitter behind the id of its request, in JobSpec.request_id:
// "4f3a" or "4f3a 00-TRACE-SPAN-01". A scheduler that is restarted finds it there. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace kiln::scheduler {

// Returns what the job keeps; "" if there is neither an id nor a trace. A text that is no
// traceparent is left out. A trace without an id gets a new one.
std::string KeptRequest(std::string_view request_id, std::string_view traceparent);

// The parts of what was kept. The views lead into it.
std::string_view RequestIdIn(std::string_view kept);
std::string_view TraceparentIn(std::string_view kept);

}  // namespace kiln::scheduler
