// Leases of runners whose time is charged to the users who hold them, and of which each user gets
// no more than he may have.
#pragma once

#include "scheduler/dispatch/lease_factory.h"
#include "scheduler/fair_share/fair_shares.h"

namespace kiln::scheduler {

// Returns leases of `leases`. Those of runners are charged to their users in `shares`, which
// outlives all sources and leases: an Acquire waits while the user has as many devices as he may
// have, and the tracker is told each user's use. Builders are neither charged nor limited: builds
// follow the devices that wait for them.
LeaseFactory ShareFairly(LeaseFactory leases, FairShares& shares);

}  // namespace kiln::scheduler
