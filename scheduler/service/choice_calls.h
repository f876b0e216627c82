// Answers which schedule a computation gets, in messages of the wire, from a store. The service
// uses these calls, and so does a client that works on a database file itself.
#pragma once

#include <cstdint>
#include <stop_token>

#include "base/status.h"
#include "proto/scheduler.pb.h"
#include "store/store.h"

namespace kiln::scheduler {

// Answers the RPC QuerySchedule. Each call reads what it needs from the store.
StatusOr<v1::QueryScheduleReply> QuerySchedule(store::Store& store,
                                               const v1::QueryScheduleRequest& request,
                                               const std::stop_token& stop);

// Answers the RPC SetSchedule. InvalidArgument if the steps do not apply to the computation.
StatusOr<v1::SetScheduleReply> SetSchedule(store::Store& store,
                                           const v1::SetScheduleRequest& request, int64_t now_s,
                                           const std::stop_token& stop);

v1::PinnedSchedule PinnedMessage(const store::PinnedSchedule& pinned);

// Answers the RPC QueryConfig.
StatusOr<v1::QueryConfigReply> QueryConfig(store::Store& store,
                                           const v1::QueryConfigRequest& request);

}  // namespace kiln::scheduler
