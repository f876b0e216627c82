// Limits of users that are checked when a job is submitted. The limit of devices is none of them: a
// job waits for a device (shared_leases.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "store/store.h"

namespace kiln::scheduler {

// Trials of a day are those of the last 24 hours.
inline constexpr int64_t kDay_s = 24 * 3600;

// OK if a user with these limits and totals may submit a job of `trials` trials. ResourceExhausted
// otherwise: one sentence with what was found, the limit, and who can change it. The trials that
// unfinished jobs may still take count as taken.
Status CheckQuotas(std::string_view user, const store::UserLimits& limits,
                   const store::UserTotals& totals, uint64_t trials);

// Tells whether CheckQuotas can refuse anything.
bool HasQuotas(const store::UserLimits& limits);

}  // namespace kiln::scheduler
