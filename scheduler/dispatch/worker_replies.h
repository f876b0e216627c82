// Bounds the answers of workers: figures are numbers, there are no more readings than were asked
// for, times are no longer than the call, and texts are no longer than the store keeps.
#pragma once

#include <chrono>

#include "base/status.h"
#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "store/record.h"

namespace kiln::scheduler {

// Cuts texts and lists that are too long, and drops unknown fields. `limit` is the longest time
// that the call may have taken. Returns DATA_LOSS for a figure that no right runner answers,
// whatever the program did: the trial is not at fault. A cost next to nothing is the program's
// fault, and becomes the result UNKNOWN_ERROR, which says what was found.
Status BoundReply(const v1::MeasureRequest& request, std::chrono::milliseconds limit,
                  v1::MeasureReply& reply);
// Refuses costs of a worker's reply that no device can have (store/plausible_cost.h). Costs of
// targets that run nothing are made up; of these only a cost next to nothing is refused.
Status CheckReportedCosts(const store::Record& record);
// Leaves out impossible times, and cuts texts that are too long.
void BoundReply(std::chrono::milliseconds limit, v1::BuildReply& reply);

}  // namespace kiln::scheduler
