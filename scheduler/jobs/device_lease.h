// The first lease of a job. Its device says what the job's other devices have to be like.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/calibration.h"
#include "rpc/lease_source.h"
#include "scheduler/values/job_spec.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::scheduler {

struct LeasedDevice {
  LeasedWorker lease;
  std::vector<search::Task> tasks;  // the job's tasks, completed with the facts of the device
  device::KnownCalibration calibration;
};

// Waits for a runner that can serve the job. A runner that cannot is left alone for a while.
// `refused` is told the reason each time a lease is of no use. Cancelled after `stop`, which the
// tasks keep as their own stop token. Returns errors of the store as they are.
StatusOr<LeasedDevice> LeaseDevice(const CheckedJob& job, const std::string& job_id,
                                   LeaseSource& source, store::Store& store,
                                   const std::stop_token& stop,
                                   const std::function<void(std::string problem)>& refused);

}  // namespace kiln::scheduler
