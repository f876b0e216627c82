// The workers of a tracker as the pages show them. Pure functions.
#pragma once

#include "proto/tracker.pb.h"
#include "scheduler/pages/json.h"

namespace kiln::scheduler {

// Most workers and keys of an answer.
inline constexpr int kMostWorkers = 300, kMostKeys = 300;

// Returns {"workers": [..], "keys": [..], "more": ..}; "more" = some are left out.
Json FleetJson(const v1::ListReply& reply);

}  // namespace kiln::scheduler
