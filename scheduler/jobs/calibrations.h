// Fits the analytic model's constants to the device of a job, and describes the constants that a
// device has (training/device_constants.h).
#pragma once

#include <span>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "device/calibration.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::scheduler {

// Text for people: "NVIDIA H200 (capability 9.0, 132 multiprocessors, ...): the analytic model
// ...".
std::string DescribeCalibration(const device::DeviceModel& model,
                                const device::KnownCalibration& known);

// Fits the constants of the tasks' device to the job's own records. Keeps the new constants unless
// they estimate the workloads that were left out of the fit no better than the old ones. Returns a
// report for people. FailedPrecondition if the job has too few correct records. Takes some 10 s for
// 400 records.
StatusOr<std::string> Calibrate(store::Store& store, const std::string& job_id,
                                std::span<const search::Task> tasks, int64_t now_s,
                                const std::stop_token& stop);

}  // namespace kiln::scheduler
