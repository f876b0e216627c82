// The device that a job runs on: the first lease, which says what the others are to be like.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/calibration.h"
#include "rpc/lease_source.h"
#include "scheduler/job_spec.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::scheduler {

struct LeasedDevice {
  LeasedWorker lease;
  std::vector<search::Task> tasks;  // the job's, completed by what the device is
  device::KnownCalibration calibration;
};

// Waits for a runner that can serve the job; one that cannot is left alone for a while. `refused`
// is told why each time nothing comes of a lease. Cancelled after `stop`, which the tasks carry on
// too; errors of the store.
StatusOr<LeasedDevice> LeaseDevice(const CheckedJob& job, const std::string& job_id,
                                   LeaseSource& source, store::Store& store,
                                   const std::stop_token& stop,
                                   const std::function<void(std::string problem)>& refused);

}  // namespace kiln::scheduler
