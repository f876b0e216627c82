// What workers may answer to a request: figures that are numbers, no more readings than were asked
// for, no times beyond those of the call, and no more text than is kept.
#pragma once

#include <chrono>

#include "base/status.h"
#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "store/record.h"

namespace kiln::scheduler {

// A reply with a figure that cannot be becomes the result UNKNOWN_ERROR, which says what was found;
// what is merely too long is cut, and fields that nobody knows are dropped. `limit`: what the call
// may have taken.
void BoundReply(const v1::MeasureRequest& request, std::chrono::milliseconds limit,
                v1::MeasureReply& reply);
// InvalidArgument: costs that no device can have (store/plausible.h). Those of targets that run
// nothing are made up, and only none is next to nothing.
Status CheckCosts(const store::Record& record);
// Times that cannot be are left out, what is too long is cut.
void BoundReply(std::chrono::milliseconds limit, v1::BuildReply& reply);

}  // namespace kiln::scheduler
