// The leases as the daemon sees them: those that jobs hold and ask for are counted, for a
// monitoring system.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/metrics/metrics.h"
#include "scheduler/dispatch/lease_factory.h"

namespace kiln::scheduler {

// Returns leases of `leases`, and shows kiln_leases_held, kiln_leases_asked, kiln_leases_lost_total
// and kiln_lease_wait_seconds, by the kind of worker. `metrics` and `clock` outlive all sources and
// leases.
LeaseFactory CountLeases(LeaseFactory leases, Metrics& metrics, Clock& clock = Clock::Real());

}  // namespace kiln::scheduler
