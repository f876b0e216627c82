// Which schedule a computation gets, and what is said of it, in the messages of the wire over a
// store: for the service, and for a client that works on a database file itself.
#pragma once

#include <cstdint>
#include <stop_token>

#include "base/status.h"
#include "proto/scheduler.pb.h"
#include "store/store.h"

namespace kiln::scheduler {

// As the RPC QuerySchedule. Each call reads what it needs of the store.
StatusOr<v1::QueryScheduleReply> QuerySchedule(store::Store& store,
                                               const v1::QueryScheduleRequest& request,
                                               const std::stop_token& stop);

// As the RPC SetSchedule: InvalidArgument where the steps do not apply to the computation.
StatusOr<v1::SetScheduleReply> SetSchedule(store::Store& store,
                                           const v1::SetScheduleRequest& request, int64_t now_s,
                                           const std::stop_token& stop);

v1::PinnedSchedule PinnedMessage(const store::PinnedSchedule& pinned);

// As the RPC QueryConfig.
StatusOr<v1::QueryConfigReply> QueryConfig(store::Store& store,
                                           const v1::QueryConfigRequest& request);

}  // namespace kiln::scheduler
